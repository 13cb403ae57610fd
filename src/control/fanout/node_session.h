// SPDX-License-Identifier: Apache-2.0
// The head's end of the connection to one node, from the first ssh to the last frame.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/fanout/fanout.h"
#include "launch/link/channel.h"
#include "sys/fd.h"
#include "sys/process.h"

namespace overcap {

// What sessions tell; called from their own threads.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  virtual void OnHello(int node, const fanout::Hello& hello) = 0;
  virtual void OnAsk(int node, const std::string& why) = 0;
  virtual void OnProgress(int node, const fanout::Progress& progress) = 0;
  virtual void OnReady(int node, const fanout::Ready& ready) = 0;
  virtual void OnNote(const std::string& text) = 0;
};

// The program for hosts that do not have it, read once when the first needs it. From any thread.
class SharedBinary;

class NodeSession {
 public:
  NodeSession(int node, const FanoutSource& source, const FanoutRequest& request, const std::string& key,
              SharedBinary* binary, SessionListener* listener);

  // Blocks until the node has ended; an error says why it failed. One that was complete stays so.
  Result<void> Run();
  // From any thread: a frame for the node, or that it may end.
  void Post(const fanout::ToNode& message);

 private:
  using Time = std::chrono::steady_clock::time_point;

  Result<void> Attempt(bool* again);
  Result<void> Connect(const std::vector<std::string>& argv);
  Result<void> Talk();
  Result<void> TakeFrames();
  Result<void> Obey(const std::string& frame);
  void Begin();
  void Give(const fanout::Get& get);
  Result<void> CopyProgram();
  std::vector<std::string> SshWords(const std::string& command) const;
  void ReadWords();
  void EndChild(std::chrono::milliseconds patience, bool hang_up);
  tl::unexpected<Error> Unusable(const std::string& why, ErrorCode code = ErrorCode::kUnavailable) const;
  bool Stopped() const { return request_.stop != nullptr && *request_.stop; }

  const int node_;
  const std::string& host_;
  const FanoutSource& source_;
  const FanoutRequest& request_;
  const std::string& key_;
  SharedBinary& binary_;
  SessionListener& listener_;

  const bool local_;
  bool plain_ways_ = false, copied_ = false;
  std::optional<node_link::Channel> channel_;
  Spawned child_;
  std::optional<ProcessEnd> end_;
  Fd errors_;          // what ssh says
  std::string words_;  // the last of it
  bool greeted_ = false, other_version_ = false, complete_ = false;
  std::optional<Error> trouble_;
  Time heard_;

  Fd wake_;           // an eventfd
  std::mutex mutex_;  // guards posted_
  std::vector<std::string> posted_;
};

class SharedBinary {
 public:
  explicit SharedBinary(std::string file) : file_(std::move(file)) {}
  struct Copy {
    std::string store_command, node_command;
    const std::string* bytes = nullptr;
  };
  Result<Copy> Get();

 private:
  const std::string file_;
  std::mutex mutex_;  // guards what follows
  std::optional<Result<Copy>> made_;
  std::string bytes_;
};

}  // namespace overcap
