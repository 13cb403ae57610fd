// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// agent-S.jsonl as its agent writes it: room is taken beforehand, so that the ending can be written when the
// disk is full.
class ReportFile {
 public:
  static Result<ReportFile> Make(const std::string& path);

  // Room for `bytes` more on top of what the ending needs. kUnavailable: the disk is full. Writes what is
  // queued before it asks the disk for anything.
  Result<void> Reserve(int64_t bytes);
  // Queue() keeps the line until the next Write(), so that two lines cost one write. Nothing slow may stand
  // between the two: a queued line is lost when the process is killed.
  void Queue(std::string_view line) { queued_ += line; }
  void Write(std::string_view line);
  void Flush() {
    if (!queued_.empty()) Write("");
  }
  // A line that may be left out: only while more room is left than the ending needs.
  void WriteIfRoom(std::string_view line);
  void Sync();
  void Touch();  // a sign of life: its time is now

  int error() const { return error_; }  // errno of the first write that failed; 0: none

 private:
  Fd fd_;
  std::string path_;
  std::string queued_;
  int64_t offset_ = 0;
  int64_t reserved_ = 0;
  int error_ = 0;
  bool kept_here_ = false;  // other hosts see what is written only when it is sent on
};

}  // namespace overcap
