// SPDX-License-Identifier: Apache-2.0
#include "net/frame.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kHeaderBytes = 4;
constexpr size_t kReadBytes = 64 << 10;
constexpr int kReadsPerFeed = 16;

std::string Header(size_t length) {
  std::string header(kHeaderBytes, '\0');
  for (size_t i = 0; i < kHeaderBytes; ++i) header[i] = static_cast<char>(length >> (8 * i));
  return header;
}

uint32_t LengthOf(std::string_view header) {
  uint32_t length = 0;
  for (size_t i = 0; i < kHeaderBytes; ++i) {
    length |= static_cast<uint32_t>(static_cast<unsigned char>(header[i])) << (8 * i);
  }
  return length;
}

tl::unexpected<Error> TooLong(size_t length, ErrorCode code) {
  return Fail(code, StrCat("a message of ", length, " bytes is longer than the socket's format allows"));
}

tl::unexpected<Error> Broken(int error_number) {
  if (error_number == EPIPE || error_number == ECONNRESET) {
    return Fail(ErrorCode::kUnavailable, "the other end closed the connection");
  }
  return Fail(ErrnoError(error_number, "the connection failed"));
}

Result<void> WaitFor(int fd, short events, FrameDeadline deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const auto wait = std::clamp<int64_t>(left.count(), 0, 1 << 30);
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(wait));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Broken(errno);
    if (ready == 0) return Fail(ErrorCode::kUnavailable, "the other end did not answer in time");
  }
}

Result<void> SendAll(int fd, std::string_view data, FrameDeadline deadline) {
  while (!data.empty()) {
    const ssize_t n = send(fd, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      data.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      OC_TRY_VOID(WaitFor(fd, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return Broken(errno);
    }
  }
  return {};
}

// Exactly `length` bytes. Memory grows with what has come, not with what a header promised.
Result<std::string> ReceiveAll(int fd, size_t length, FrameDeadline deadline) {
  std::string out;
  size_t filled = 0;
  while (filled < length) {
    if (filled == out.size()) out.resize(std::min(length, filled * 2 + kReadBytes));
    const ssize_t n = recv(fd, out.data() + filled, out.size() - filled, MSG_DONTWAIT);
    if (n == 0) return Broken(EPIPE);
    if (n > 0) {
      filled += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      OC_TRY_VOID(WaitFor(fd, POLLIN, deadline));
    } else if (errno != EINTR) {
      return Broken(errno);
    }
  }
  return out;
}

// Drops what has been consumed: all at once when empty, else only when that is most of a big buffer.
void Compact(std::string* buffer, size_t* begin) {
  if (*begin == buffer->size()) {
    if (buffer->capacity() > 16 * kReadBytes) {
      std::string().swap(*buffer);
    } else {
      buffer->clear();
    }
    *begin = 0;
  } else if (*begin > kReadBytes && *begin > buffer->size() / 2) {
    buffer->erase(0, *begin);
    *begin = 0;
  }
}

}  // namespace

Result<void> SendFrame(const Fd& fd, std::string_view payload, FrameDeadline deadline) {
  if (payload.size() > kMaxFrameBytes) return TooLong(payload.size(), ErrorCode::kUsage);
  if (payload.size() > kReadBytes) {
    OC_TRY_VOID(SendAll(fd.Get(), Header(payload.size()), deadline));
    return SendAll(fd.Get(), payload, deadline);
  }
  return SendAll(fd.Get(), Header(payload.size()).append(payload), deadline);
}

Result<std::string> ReceiveFrame(const Fd& fd, FrameDeadline deadline) {
  OC_TRY(header, ReceiveAll(fd.Get(), kHeaderBytes, deadline));
  const uint32_t length = LengthOf(header);
  if (length > kMaxFrameBytes) return TooLong(length, ErrorCode::kCorrupt);
  return ReceiveAll(fd.Get(), length, deadline);
}

Result<bool> FrameReader::FeedFrom(const Fd& fd) {
  std::array<char, kReadBytes> chunk;
  for (int i = 0; i < kReadsPerFeed; ++i) {
    const ssize_t n = recv(fd.Get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (n == 0) return false;
    if (n < 0 && errno == EAGAIN) return true;
    if (n < 0 && errno != EINTR) return Broken(errno);
    if (n > 0) Feed({chunk.data(), static_cast<size_t>(n)});
    if (n > 0 && static_cast<size_t>(n) < chunk.size()) return true;
  }
  return true;
}

Result<std::optional<std::string>> FrameReader::Next() {
  Compact(&buffer_, &begin_);
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (rest.size() < kHeaderBytes) return std::optional<std::string>();
  const uint32_t length = LengthOf(rest);
  if (length > max_bytes_) return TooLong(length, ErrorCode::kCorrupt);
  if (rest.size() - kHeaderBytes < length) return std::optional<std::string>();
  begin_ += kHeaderBytes + length;
  return std::optional<std::string>(rest.substr(kHeaderBytes, length));
}

Result<void> FrameWriter::Add(std::string_view payload) {
  if (payload.size() > kMaxFrameBytes) return TooLong(payload.size(), ErrorCode::kUsage);
  buffer_.append(Header(payload.size())).append(payload);
  return {};
}

Result<bool> FrameWriter::Flush(const Fd& fd) {
  while (Pending() > 0) {
    const ssize_t n = send(fd.Get(), buffer_.data() + begin_, Pending(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0 && errno != EINTR) return Broken(errno);
    if (n > 0) begin_ += static_cast<size_t>(n);
  }
  Compact(&buffer_, &begin_);
  return buffer_.empty();
}

}  // namespace overcap
