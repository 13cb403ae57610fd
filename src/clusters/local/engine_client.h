// SPDX-License-Identifier: Apache-2.0
// Talks to the embedded engine over its socket (docs/formats/api.md) and starts it at the first need.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

class EngineClient {
 public:
  struct Options {
    std::string root;
    std::string binary;                         // started as `<binary> daemon --root <root>`; empty: never
    std::function<std::string()> machine_json;  // told to an engine that this client has started
    std::string socket = {};                    // "": daemon.sock in the root
    bool of_root = false;                       // only root's process may be at the other end
  };
  explicit EngineClient(Options options) : options_(std::move(options)) {}

  // Sends one request and gives the text of the reply's `ok`, or its error. An engine that does not listen is
  // started; when the connection breaks the request is sent again, so it must be idempotent. Blocks for
  // `patience` at most (and the engine's start).
  Result<std::string> Call(std::string_view request, std::chrono::seconds patience);

  // Whether the last Call() had to send its request more than once: an earlier one may have been done.
  bool resent() const { return resent_; }

 private:
  Result<void> Connect();
  Result<std::string> Exchange(std::string_view request, std::chrono::seconds patience);

  Options options_;
  Fd connection_;
  bool resent_ = false;
};

// What the frame of a reply says: the text of `ok`, or the error.
Result<std::string> OpenReply(std::string frame);

}  // namespace overcap
