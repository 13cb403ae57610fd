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
};

struct FanoutReport {
  std::vector<FanoutNodeEnd> nodes;  // in the order of the hosts
  int64_t Complete() const;
  int64_t FromHead() const;   // bytes that came from this machine, all nodes
  int64_t FromPeers() const;  // bytes among nodes
};

// What fails is in the report, node by node; an error means that none was tried: kUsage unless there are
// hosts with valid names.
Result<FanoutReport> RunFanout(const FanoutSource& source, const FanoutRequest& request);

}  // namespace overcap
