// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/frame.h"
#include "sys/fd.h"

namespace overcap::node_link {

// Both ends of one connection as the caller has them: pipes, or one socket that does both.
struct Ends {
  Fd read;
  Fd write;  // not valid: `read` is a socket and takes what is written, too
};

// Frames over any pair of descriptors, which it makes non-blocking. Nothing here waits. SIGPIPE must be
// blocked or ignored by the caller.
class Channel {
 public:
  enum class Preamble { kNone, kExpected };  // kExpected: drop what comes before kPreamble, up to 64 KiB

  explicit Channel(Ends ends, Preamble preamble = Preamble::kNone);

  int ReadFd() const { return ends_.read.Get(); }
  int WriteFd() const { return ends_.write ? ends_.write.Get() : ends_.read.Get(); }

  // Takes what is there now, bounded: true while the other end is open. After false the whole frames that
  // came before are still to be had from Next().
  bool Read();
  // The next whole frame, or nullopt until more comes. kCorrupt: close the channel.
  Result<std::optional<std::string>> Next();

  void Send(std::string_view frame);
  // A frame of an 'O' message, without another copy of its bytes.
  void SendOutput(int rank, int stream, std::string_view bytes);
  void SendRaw(std::string_view bytes);  // no frame: the preamble
  // Writes as much as goes now; false when the other end is gone (and all that is pending with it).
  bool Flush();
  size_t Pending() const { return out_.size() - out_begin_; }

 private:
  Result<bool> SkipToPreamble();  // true: it has come

  Ends ends_;
  bool before_preamble_;
  std::string noise_;
  FrameReader in_;
  std::string out_;
  size_t out_begin_ = 0;
};

}  // namespace overcap::node_link
