// SPDX-License-Identifier: Apache-2.0
#include "launch/link/channel.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "launch/link/messages.h"

namespace overcap::node_link {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr int kReadsPerTurn = 8;
constexpr size_t kMaxNoise = 64 << 10;

void MakeNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0) (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

void AppendNumber(std::string* out, uint32_t value) {
  for (int i = 0; i < 4; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

Channel::Channel(Ends ends, Preamble preamble)
    : ends_(std::move(ends)), before_preamble_(preamble == Preamble::kExpected) {
  MakeNonBlocking(ends_.read.Get());
  if (ends_.write) MakeNonBlocking(ends_.write.Get());
}

bool Channel::Read() {
  static thread_local std::string chunk(kReadBytes, '\0');
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const ssize_t n = read(ends_.read.Get(), chunk.data(), chunk.size());
    if (n == 0) return false;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    const std::string_view bytes(chunk.data(), static_cast<size_t>(n));
    if (before_preamble_) {
      noise_.append(bytes);
    } else {
      in_.Feed(bytes);
    }
  }
  return true;
}

Result<bool> Channel::SkipToPreamble() {
  const size_t at = noise_.find(kPreamble);
  if (at == std::string::npos) {
    if (noise_.size() > kMaxNoise) {
      return Fail(ErrorCode::kCorrupt, "its login scripts print too much to standard output");
    }
    return false;
  }
  before_preamble_ = false;
  in_.Feed(std::string_view(noise_).substr(at + kPreamble.size()));
  std::string().swap(noise_);
  return true;
}

Result<std::optional<std::string>> Channel::Next() {
  if (before_preamble_) {
    OC_TRY(come, SkipToPreamble());
    if (!come) return std::optional<std::string>();
  }
  return in_.Next();
}

void Channel::Send(std::string_view frame) {
  AppendNumber(&out_, static_cast<uint32_t>(frame.size()));
  out_.append(frame);
}

void Channel::SendOutput(int rank, int stream, std::string_view bytes) {
  AppendNumber(&out_, static_cast<uint32_t>(bytes.size() + 6));
  out_.push_back('O');
  AppendNumber(&out_, static_cast<uint32_t>(rank));
  out_.push_back(static_cast<char>(stream));
  out_.append(bytes);
}

void Channel::SendRaw(std::string_view bytes) {
  out_.append(bytes);
}

bool Channel::Flush() {
  while (Pending() > 0) {
    const ssize_t n = write(WriteFd(), out_.data() + out_begin_, Pending());
    if (n > 0) out_begin_ += static_cast<size_t>(n);
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0 && errno != EINTR) return out_.clear(), out_begin_ = 0, false;
  }
  if (Pending() == 0) {
    out_.clear();
    out_begin_ = 0;
  } else if (out_begin_ > out_.size() / 2) {
    out_.erase(0, out_begin_);
    out_begin_ = 0;
  }
  return true;
}

}  // namespace overcap::node_link
