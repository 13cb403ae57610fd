// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

class OutputSink;  // supervisor.h

// Carries what processes write into a pipe to a file, byte for byte, and never lets them wait for the disk:
// while the file cannot take more (disk full, quota) their output is dropped, and it goes on when there is
// room.
class OutputPump {
 public:
  // `file` is borrowed, opened for writing without O_APPEND; bytes go to its current offset on. They are
  // told as `stream`.
  static Result<OutputPump> Make(int file, int stream = 1);
  // To a sink instead, told that it is `stream`. What it cannot take now stays in the pipe.
  static Result<OutputPump> MakeToSink(OutputSink* sink, int stream);

  int ReadFd() const { return read_end_.Get(); }    // to poll; -1 after the end
  int WriteFd() const { return write_end_.Get(); }  // for the children
  void CloseWriteEnd() { write_end_.Reset(); }      // after the children have it
  bool Ended() const { return !read_end_.Valid(); }
  bool Blocked() const;  // by its sink: there is no use in polling for more

  // Moves what is there without waiting, up to about `limit` bytes. False: nothing is there now, or it ended.
  bool Pump(int64_t now_us, int64_t limit = 4 << 20);
  void Close() { read_end_.Reset(); }

  bool Busy() const { return large_; }  // its writer writes much at a time
  int stream() const { return stream_; }
  bool ToFile() const { return file_ >= 0; }
  int64_t moved_bytes() const { return moved_bytes_; }  // in all
  int64_t dropped_bytes() const { return dropped_bytes_; }
  int drop_error() const { return drop_error_; }  // errno of the first failed write; 0: none

 private:
  static Result<OutputPump> MakePump();
  ssize_t Move();        // as read(2)
  ssize_t GiveToSink();  // as read(2)
  ssize_t Drop();        // as read(2)
  ssize_t CopyToFile();  // for files that splice cannot write
  void WriteFailed(int error, int64_t now_us);
  void Grow(ssize_t moved);

  Fd read_end_, write_end_;
  int file_ = -1;
  OutputSink* sink_ = nullptr;
  int stream_ = 1;
  bool large_ = false;  // the pipe was made larger
  bool splice_ = true;
  int64_t retry_us_ = 0;  // before that the file is not tried
  int64_t moved_bytes_ = 0;
  int64_t dropped_bytes_ = 0;
  int drop_error_ = 0;
};

}  // namespace overcap
