// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "stores/segment_keys.h"
#include "stores/store.h"
#include "sys/fd.h"

namespace overcap {

// Carries a file that grows into a store. One thread at a time.
class SegmentUpload {
 public:
  struct Options {
    bool lines = false;  // whole lines only, and no NULs behind them: a report
    bool free = false;   // bytes that are in the store need no room on the disk any more
    bool left = false;   // of a writer that is gone: it does not grow, and nothing of it is given up
  };
  SegmentUpload(std::string path, std::string key, Options options)
      : path_(std::move(path)), key_(std::move(key)), options_(options) {}

  // Puts what is to be put now, at most one segment; true when it has put one. A file that is not there yet
  // has nothing. After an error the same may be called again.
  Result<bool> Step(Store* store, int64_t now_us, bool hurry);
  // Puts again what is shorter in the store than it was put; true when all was as it should be.
  Result<bool> Check(Store* store);
  // Gives up the oldest bytes that are not in the store while more than `most` are not; how many. Only of
  // files whose room can be given back.
  int64_t DropBeyond(int64_t most);

  int64_t Unsent();  // bytes that are in the file only
  int64_t Sent() const { return state_.sent; }
  const std::string& path() const { return path_; }

 private:
  Result<void> Resume(const Store& store);
  int64_t Size();
  void PassHole();
  bool HasHole(int64_t begin, int64_t end) const;
  Result<std::string> ReadPart(int64_t begin, int64_t end) const;
  Result<void> PutPart(Store* store, const SegmentPut& put);
  void Free(int64_t until);

  std::string path_, key_;
  Options options_;
  Fd fd_;
  int64_t end_ = INT64_MAX;  // a hole begins there: what is behind it is a segment of its own
  bool resumed_ = false;
  SegmentState state_;
  std::map<int64_t, int64_t> put_;  // start and size of what this object has put
  int64_t freed_ = 0;
  bool checked_ = false;  // nothing was put since all was as it should be
};

}  // namespace overcap
