// SPDX-License-Identifier: Apache-2.0
// The node's end of its connection to the head of a fan-out.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "control/fanout/fanout_messages.h"
#include "launch/link/channel.h"
#include "sys/fd.h"

namespace overcap {

// A thread of its own reads and writes; everything else may be called from any thread. Once the head is gone
// all that waits ends with kUnavailable.
class NodeUplink {
 public:
  static Result<std::unique_ptr<NodeUplink>> Make(node_link::Ends ends);
  ~NodeUplink();

  void Send(const fanout::ToHead& message);
  // What this node is to do, with all objects that came before it.
  struct Work {
    fanout::Start start;
    std::vector<fanout::Object> objects;
  };
  Result<Work> WaitForWork();
  // Which peer to fetch from; waits as long as the head takes.
  Result<fanout::Use> Ask(const std::string& why);
  // As PeerConnection::Get.
  Result<void> Get(const std::vector<fanout::WantedChunk>& chunks, const std::vector<char*>& out,
                   std::vector<bool>* there);
  void WaitForFinish();  // or until the head is gone
  void Flush();          // what was sent has left, or the head is gone, or it takes more than a minute

  const std::atomic<bool>* gone() const { return &gone_; }
  int stop_fd() const { return stop_.Get(); }  // readable when the head is gone
  int64_t received() const { return received_; }

 private:
  struct Request {
    const std::vector<fanout::WantedChunk>* chunks = nullptr;
    const std::vector<char*>* out = nullptr;
    std::vector<bool>* there = nullptr;
    bool answered = false, bad = false;
  };

  NodeUplink(node_link::Ends ends, Fd stop, Fd wake)
      : channel_(std::move(ends)), stop_(std::move(stop)), wake_(std::move(wake)) {}
  void Run();
  void TakeFrames();                         // with mutex_
  void Obey(const std::string& frame);       // with mutex_
  void Answer(const fanout::Data& data);     // with mutex_
  void Lose();                               // with mutex_
  void SendLocked(const std::string& text);  // with mutex_
  tl::unexpected<Error> HeadGone() const;

  std::mutex mutex_;  // guards what follows up to the atomics
  std::condition_variable changed_;
  node_link::Channel channel_;
  Work work_;
  bool has_work_ = false;
  std::optional<fanout::Use> use_;
  std::map<uint64_t, Request*> requests_;
  uint64_t last_request_ = 0;
  bool finish_ = false;
  fanout::Progress progress_;
  int64_t sent_us_ = 0;

  std::atomic<bool> gone_ = false, ending_ = false;
  std::atomic<int64_t> received_ = 0;
  const Fd stop_, wake_;  // eventfds
  std::thread thread_;
};

}  // namespace overcap
