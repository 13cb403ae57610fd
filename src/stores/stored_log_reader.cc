// SPDX-License-Identifier: Apache-2.0
#include "stores/stored_log_reader.h"

#include <algorithm>

#include "base/text.h"
#include "stores/object_size.h"
#include "stores/segment_keys.h"

namespace overcap {
namespace {

constexpr int64_t kFetch = 4 << 20;
constexpr int64_t kBlock = 64 << 10;
constexpr int kListEvery = 8;

}  // namespace

Result<std::string> StoredLogReader::Fetch(int64_t segment, int64_t offset, int64_t limit) const {
  auto bytes = store_.Get(SegmentKey(file_, segment), offset, limit);
  if (!bytes && bytes.error().code == ErrorCode::kNotFound) return std::string();
  return bytes;
}

Result<std::vector<StoredLogReader::Segment>> StoredLogReader::List(const std::string& after) const {
  std::vector<Segment> segments;
  std::string next = after;
  do {
    OC_TRY(page, store_.List(file_ + "/", next));
    for (const StoredObjectInfo& object : page.objects) {
      OC_TRY_VOID(CheckObjectSize(object.key, object.size));
      const auto start = SegmentOffset(file_, object.key);
      if (start && *start <= kMostObjectBytes) segments.push_back({*start, object.size});
    }
    next = page.next;
  } while (!next.empty());
  return segments;
}

Result<std::string> StoredLogReader::Next() {
  OC_TRY(bytes, Fetch(segment_, at_ - segment_, kFetch));
  if (bytes.empty() && at_ > segment_) {
    OC_TRY(following, Fetch(at_, 0, kFetch));
    if (!following.empty()) segment_ = at_;
    bytes = std::move(following);
  }
  at_ += static_cast<int64_t>(bytes.size());
  idle_ = bytes.empty() ? idle_ + 1 : 0;
  if (!bytes.empty() || idle_ % kListEvery != 1) return bytes;
  return Look();
}

// Another writer may have gone on in the middle of a segment, or behind what was dropped.
Result<std::string> StoredLogReader::Look() {
  OC_TRY(segments, List(at_ > 0 ? SegmentKey(file_, segment_) : ""));
  const Segment* found = nullptr;
  for (const Segment& segment : segments) {
    if (segment.size == 0 || segment.start + segment.size <= at_) continue;
    if (found == nullptr || segment.start <= at_) found = &segment;
  }
  if (found == nullptr) return std::string();
  idle_ = 0;
  segment_ = found->start;
  if (segment_ <= at_) return Next();
  const int64_t dropped = segment_ - at_;
  at_ = segment_;
  return StrCat("[overcap: ", dropped, " bytes of this log were dropped on the node]\n");
}

Result<std::string> StoredLogReader::Read(size_t limit) {
  if (ready_.empty()) {
    OC_TRY(bytes, Next());
    ready_ = std::move(bytes);
  }
  if (ready_.size() <= limit) return std::exchange(ready_, {});
  std::string some = ready_.substr(0, limit);
  ready_.erase(0, limit);
  return some;
}

// The bytes before `end` that are in one segment with it; `*from` is where they begin. Where nothing stands
// before it: no bytes, and `*from` is the end of what stands further before.
Result<std::string> StoredLogReader::ReadBefore(const std::vector<Segment>& segments, int64_t end,
                                                int64_t* from) const {
  const Segment* found = nullptr;
  int64_t before = 0;
  for (const Segment& segment : segments) {
    if (segment.start >= end) continue;
    if (segment.start + segment.size >= end) found = &segment;
    if (segment.start + segment.size < end) before = std::max(before, segment.start + segment.size);
  }
  if (found == nullptr) {
    *from = before;
    return std::string();
  }
  *from = std::max(found->start, end - kBlock);
  return Fetch(found->start, *from - found->start, end - *from);
}

Result<void> StoredLogReader::SeekTo(int64_t offset) {
  OC_TRY(segments, List(""));
  ready_.clear();
  at_ = std::max<int64_t>(0, offset);
  segment_ = 0;
  for (const Segment& segment : segments) {
    if (segment.start <= at_) segment_ = segment.start;
  }
  return {};
}

Result<void> StoredLogReader::SeekToTail(int64_t lines, int64_t max_bytes) {
  OC_TRY(segments, List(""));
  int64_t size = 0;
  for (const Segment& segment : segments) size = std::max(size, segment.start + segment.size);
  const int64_t first = std::max<int64_t>(0, size - max_bytes);
  int64_t begin = size;
  bool found = false;
  while (lines > 0 && begin > first && !found) {
    int64_t from = 0;
    OC_TRY(block, ReadBefore(segments, begin, &from));
    for (auto i = static_cast<int64_t>(block.size()) - 1; i >= 0; --i) {
      // The newline at the very end belongs to the last line.
      if (block[static_cast<size_t>(i)] != '\n' || from + i == size - 1 || --lines > 0) continue;
      begin = from + i + 1;
      found = true;
      break;
    }
    if (!found) begin = from;
  }
  begin = std::max(begin, first);
  ready_.clear();
  at_ = begin;
  segment_ = 0;
  for (const Segment& segment : segments) {
    if (segment.start <= at_) segment_ = segment.start;
  }
  return {};
}

}  // namespace overcap
