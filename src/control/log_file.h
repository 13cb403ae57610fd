// SPDX-License-Identifier: Apache-2.0
// Reads a log that may be huge and may still grow.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

class LogReader {
 public:
  // A file that is not there yet reads as empty until it is.
  explicit LogReader(std::string path) : path_(std::move(path)) {}

  // Goes to the last `lines` lines, or `max_bytes` bytes if those are fewer; reads only the end of the file.
  // A last line without a newline counts.
  Result<void> SeekToTail(int64_t lines, int64_t max_bytes);
  // The bytes from here on, at most `limit`; "" at the present end.
  Result<std::string> Read(size_t limit);

  const std::string& path() const { return path_; }
  int64_t offset() const { return offset_; }

 private:
  Result<bool> Open();  // whether there is a file

  std::string path_;
  Fd fd_;
  int64_t offset_ = 0;
};

// The last lines of a log, for people; "" when there is none.
std::string TailText(const std::string& path, int64_t lines, int64_t max_bytes);

}  // namespace overcap
