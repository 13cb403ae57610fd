// SPDX-License-Identifier: Apache-2.0
// Messages on a stream socket: 4 bytes length, little endian, then so many bytes (docs/formats/api.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

constexpr uint32_t kMaxFrameBytes = 256u << 20;

using FrameDeadline = std::chrono::steady_clock::time_point;

// Client side, on a socket of either mode. kUnavailable after the deadline and when the other end has closed;
// then the connection is of no further use. Never raises SIGPIPE.
Result<void> SendFrame(const Fd& fd, std::string_view payload, FrameDeadline deadline);
Result<std::string> ReceiveFrame(const Fd& fd, FrameDeadline deadline);

// Server side of one connection: takes bytes as they come, gives whole frames.
class FrameReader {
 public:
  explicit FrameReader(uint32_t max_bytes = kMaxFrameBytes) : max_bytes_(max_bytes) {}

  void Feed(std::string_view bytes) { buffer_.append(bytes); }
  // Reads what the socket has now, without blocking and bounded, so that no client starves the others: true
  // while the other end is open.
  Result<bool> FeedFrom(const Fd& fd);
  // The next whole frame, or nullopt until more comes; kCorrupt for a length over the limit: close the
  // connection.
  Result<std::optional<std::string>> Next();
  size_t Buffered() const { return buffer_.size() - begin_; }  // that Next() has not given yet

 private:
  uint32_t max_bytes_;
  std::string buffer_;
  size_t begin_ = 0;  // of what Next() has not given yet
};

// Server side of one connection: keeps output until the socket takes it.
class FrameWriter {
 public:
  // kUsage when it is longer than a frame may be; then nothing is added.
  Result<void> Add(std::string_view payload);
  // Writes as much as the socket takes now; true when nothing is left. An error means that the other end is
  // gone.
  Result<bool> Flush(const Fd& fd);
  size_t Pending() const { return buffer_.size() - begin_; }

 private:
  std::string buffer_;
  size_t begin_ = 0;
};

}  // namespace overcap
