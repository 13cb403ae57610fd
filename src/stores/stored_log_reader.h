// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "stores/store.h"

namespace overcap {

// Reads a file that is kept as segments and may still grow; each byte travels once.
class StoredLogReader {
 public:
  // `file` is the key that its segments stand under. The store must outlive it.
  StoredLogReader(const Store& store, std::string file) : store_(store), file_(std::move(file)) {}

  // The bytes from here on, at most `limit`; "" at the present end, also when there is no file yet. Bytes
  // that were dropped on the way are told in their place.
  Result<std::string> Read(size_t limit);
  // Goes to the last `lines` lines, or `max_bytes` bytes if those are fewer. Reads only the end.
  Result<void> SeekToTail(int64_t lines, int64_t max_bytes);
  // Goes to that byte of the file.
  Result<void> SeekTo(int64_t offset);
  int64_t offset() const { return at_ - static_cast<int64_t>(ready_.size()); }

 private:
  struct Segment {
    int64_t start = 0, size = 0;
  };
  Result<std::vector<Segment>> List(const std::string& after) const;
  Result<std::string> Fetch(int64_t segment, int64_t offset, int64_t limit) const;  // "": no such bytes
  Result<std::string> Next();
  Result<std::string> Look();
  Result<std::string> ReadBefore(const std::vector<Segment>& segments, int64_t end, int64_t* from) const;

  const Store& store_;
  std::string file_;
  std::string ready_;    // fetched and not yet given
  int64_t segment_ = 0;  // where the one begins that is read
  int64_t at_ = 0;       // the first byte that was not fetched
  int idle_ = 0;         // looks without anything new
};

}  // namespace overcap
