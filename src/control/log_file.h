// SPDX-License-Identifier: Apache-2.0
// Reads a log that may be huge and may still grow.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "stores/stored_log_reader.h"
#include "sys/fd.h"

namespace overcap {

class LogReader {
 public:
  // A file that is not there yet reads as empty until it is.
  explicit LogReader(std::string path) : path_(std::move(path)) {}
  // Of a file that may be here, or in a store under that key; nullptr: it is here.
  LogReader(std::string path, std::shared_ptr<const Store> store, const std::string& key)
      : path_(std::move(path)), store_(std::move(store)) {
    if (store_ != nullptr) segments_.emplace(*store_, key);
  }

  // Goes to the last `lines` lines, or `max_bytes` bytes if those are fewer; reads only the end of the file.
  // A last line without a newline counts.
  Result<void> SeekToTail(int64_t lines, int64_t max_bytes);
  // The bytes from here on, about `limit` at most; "" at the present end. A part that the log has lost
  // (logs.max) is passed over; a line says so in its place.
  Result<std::string> Read(size_t limit);

  const std::string& path() const { return path_; }
  int64_t offset() const { return offset_; }
  // Whether each look is a question to a server.
  bool remote() const { return cached_ || (segments_.has_value() && !fd_); }

 private:
  Result<bool> Open();                             // whether there is a file here
  int ReadHere(size_t limit, std::string* bytes);  // 0 or an errno

  std::string path_;
  Fd fd_;
  int64_t offset_ = 0;
  bool at_line_begin_ = true;
  std::shared_ptr<const Store> store_;
  std::optional<StoredLogReader> segments_;  // of a log that is in a store
  bool looked_ = false;                      // whether it is here
  bool cached_ = false;                      // where its end is, this host may believe for a minute
};

// The last lines of a log, for people; "" when there is none.
std::string TailText(const std::string& path, int64_t lines, int64_t max_bytes);
std::string TailText(LogReader reader, int64_t lines, int64_t max_bytes);

}  // namespace overcap
