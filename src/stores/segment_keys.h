// SPDX-License-Identifier: Apache-2.0
// A file that only grows, kept in a store as segments (docs/formats/job-store.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace overcap {

constexpr int64_t kGrowBytes = 128 << 10;   // a segment below this is put again, longer
constexpr int64_t kMostSegment = 8 << 20;   // bytes of one
constexpr int64_t kPutPauseUs = 1'000'000;  // between two puts of one file
constexpr int64_t kPauseBytes = 64 << 10;   // of a segment that is put again cost such a pause each

// "jobs/ID/attempt-1/rank-0.log/0000000000000000"
std::string SegmentKey(const std::string& file, int64_t offset);
// The offset that a key of `file` stands for; nullopt: it is no segment of it.
std::optional<int64_t> SegmentOffset(const std::string& file, std::string_view key);

// What is in the store of a file: its last segment holds [start, sent).
struct SegmentState {
  int64_t start = 0;
  int64_t sent = 0;
  int64_t put_us = INT64_MIN / 2;  // when the last put began, monotonic
  bool may_grow = false;           // whether we have put it: that of another writer is left as it is
  bool operator==(const SegmentState&) const = default;
};

struct SegmentPut {
  int64_t start = 0, end = 0;
  bool operator==(const SegmentPut&) const = default;
};

// What to put now of a file that has `size` bytes; nothing: all is there, or it is too early. `hurry`: it is
// not.
std::optional<SegmentPut> NextPut(const SegmentState& state, int64_t size, int64_t now_us, bool hurry);
void NotePut(const SegmentPut& put, int64_t now_us, SegmentState* state);

}  // namespace overcap
