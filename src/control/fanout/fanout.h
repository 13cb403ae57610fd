// SPDX-License-Identifier: Apache-2.0
// `overcap fanout`: one folder to the disks of many nodes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/fanout/fanout_messages.h"
#include "control/fanout/fanout_source.h"
#include "sys/random.h"

namespace overcap {

struct FanoutProgress {
  int nodes = 0, complete = 0, failed = 0;
  int64_t bytes_done = 0, bytes_total = 0;  // over all nodes; total 0: not known yet
};

struct FanoutRequest {
  std::vector<std::string> hosts;
  std::string target;            // as written: each node has its own variables
  std::vector<std::string> old;  // where the folder was when it was made
  bool fix = true;
  bool force = false;
  bool ssh_only = false;  // nothing that this machine sends goes past ssh
  std::string binary;     // this program's own file
  std::string ssh_program;
  std::vector<std::string> ssh_options;
  std::vector<std::string> env;
  Random* random = nullptr;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const FanoutProgress&)> progress;  // from one thread, some times a second
  std::function<void(const std::string&)> note, warn;   // one at a time, from any thread
};

struct FanoutNodeEnd {
  std::string host;
  std::optional<Error> error;  // nullopt: it is complete
  fanout::Ready ready;         // of one that has come so far
  std::string from;            // who has fed it last: "" the head; of one that fetched
  bool fetched = false;
  int64_t pulled_files = 0, from_store = 0;  // before it began
};

struct FanoutReport {
  std::vector<FanoutNodeEnd> nodes;  // in the order of the hosts
  int64_t Complete() const;
  int64_t FromHead() const;   // bytes that came from this machine, all nodes
  int64_t FromPeers() const;  // bytes among nodes
  int64_t FromStore() const;  // bytes that nodes pulled
};

// kUsage unless there are some, each of which is a name of a host.
Result<void> CheckFanoutHosts(const std::vector<std::string>& hosts);

// While it lives a node that dies is seen by its connection, and no signal comes of it.
class IgnoredPipeSignal {
 public:
  IgnoredPipeSignal();
  ~IgnoredPipeSignal();
  IgnoredPipeSignal(const IgnoredPipeSignal&) = delete;
  IgnoredPipeSignal& operator=(const IgnoredPipeSignal&) = delete;

 private:
  void (*before_)(int);
};

// What fails is in the report, node by node; an error means that none was tried.
Result<FanoutReport> RunFanout(const FanoutSource& source, const FanoutRequest& request);

}  // namespace overcap
