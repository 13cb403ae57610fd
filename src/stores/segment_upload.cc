// SPDX-License-Identifier: Apache-2.0
#include "stores/segment_upload.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/log_bound.h"

namespace overcap {
namespace {

constexpr int64_t kFreeStep = 1 << 20;

}  // namespace

// Of a report only what ends with a line that was written: room is taken beforehand.
int64_t SegmentUpload::Size() {
  constexpr int kHow = O_CLOEXEC | O_NOFOLLOW;
  if (!fd_) fd_ = Fd(open(path_.c_str(), (options_.free ? O_RDWR : O_RDONLY) | kHow));
  if (!fd_ && errno == EACCES) fd_ = Fd(open(path_.c_str(), O_RDONLY | kHow));  // its ranks write it: 0400
  struct stat info {};
  if (!fd_ || fstat(fd_.Get(), &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  if (!options_.lines || info.st_size <= state_.sent) return info.st_size;
  const auto text = ReadPart(state_.sent, std::min<int64_t>(info.st_size, state_.sent + kMostSegment));
  if (!text) return state_.sent;
  const size_t nul = std::min(text->find('\0'), text->size());
  const size_t line = text->rfind('\n', nul == 0 ? 0 : nul - 1);
  return nul == 0 || line == std::string::npos ? state_.sent : state_.sent + static_cast<int64_t>(line) + 1;
}

Result<std::string> SegmentUpload::ReadPart(int64_t begin, int64_t end) const {
  std::string bytes(static_cast<size_t>(end - begin), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        pread(fd_.Get(), bytes.data() + done, bytes.size() - done, begin + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(ErrnoError(errno, StrCat("cannot read '", path_, "'")));
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return bytes;
}

// Somebody may have put a part of it before us.
Result<void> SegmentUpload::Resume(const Store& store) {
  OC_TRY(objects, store.ListAll(key_ + "/"));
  for (const StoredObjectInfo& object : objects) {
    const auto start = SegmentOffset(key_, object.key);
    if (!start || *start + object.size <= state_.sent) continue;
    state_.start = *start;
    state_.sent = *start + object.size;
  }
  resumed_ = true;
  return {};
}

bool SegmentUpload::HasHole(int64_t begin, int64_t end) const {
  if (options_.lines) return false;
  const std::vector<FileStretch> holes = HolesOf(fd_.Get());
  return std::any_of(holes.begin(), holes.end(),
                     [=](const FileStretch& hole) { return hole.begin < end && hole.end > begin; });
}

Result<void> SegmentUpload::PutPart(Store* store, const SegmentPut& put) {
  OC_TRY(bytes, ReadPart(put.start, put.end));
  if (static_cast<int64_t>(bytes.size()) != put.end - put.start)
    return Fail(ErrorCode::kCorrupt, StrCat("'", path_, "' has become shorter"));
  // Part of it may have been released while it was read.
  if (bytes.find('\0') != std::string::npos && HasHole(put.start, put.end))
    return Fail(ErrorCode::kUnavailable, StrCat("a part of '", path_, "' was dropped (logs.max)"));
  return store->Put(SegmentKey(key_, put.start), bytes);
}

Result<bool> SegmentUpload::Step(Store* store, int64_t now_us, bool hurry) {
  if (Size() == 0) return false;
  if (!resumed_) OC_TRY_VOID(Resume(*store));
  if (Size() > state_.sent) PassHole();
  const auto put = NextPut(state_, std::min(Size(), end_), now_us, hurry || end_ < Size());
  if (!put) return false;
  OC_TRY_VOID(PutPart(store, *put));
  NotePut(*put, now_us, &state_);
  checked_ = false;
  put_[put->start] = put->end - put->start;
  Free(state_.start);
  return true;
}

// A log that is larger than logs.max has lost its middle: that is no part of any segment.
void SegmentUpload::PassHole() {
  end_ = INT64_MAX;
  if (options_.lines) return;
  for (const FileStretch& hole : HolesOf(fd_.Get())) {
    if (hole.end <= std::max(freed_, state_.start) || hole.end >= Size()) continue;
    if (hole.begin > state_.sent) {
      end_ = hole.begin;
      return;
    }
    state_.sent = std::max(state_.sent, hole.end);
    state_.start = state_.sent;
    state_.may_grow = false;
  }
}

Result<bool> SegmentUpload::Check(Store* store) {
  if (checked_ || put_.empty()) return true;
  OC_TRY(objects, store->ListAll(key_ + "/"));
  std::map<int64_t, int64_t> there;
  for (const StoredObjectInfo& object : objects) {
    if (const auto start = SegmentOffset(key_, object.key)) there[*start] = object.size;
  }
  bool good = true;
  for (const auto& [start, size] : put_) {
    const auto found = there.find(start);
    if (found != there.end() && found->second >= size) continue;
    good = false;
    // What was freed is gone; only the last segments can be put again.
    if (start >= freed_ && !HasHole(start, start + size)) OC_TRY_VOID(PutPart(store, {start, start + size}));
  }
  checked_ = good;
  return good;
}

void SegmentUpload::Free(int64_t until) {
  const int64_t end = until / kFreeStep * kFreeStep;
  if (!options_.free || end <= freed_) return;
  if (fallocate(fd_.Get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, freed_, end - freed_) == 0)
    freed_ = end;
}

int64_t SegmentUpload::Unsent() {
  return std::max<int64_t>(0, Size() - state_.sent);
}

int64_t SegmentUpload::DropBeyond(int64_t most) {
  const int64_t unsent = !options_.free || options_.left ? 0 : Unsent();
  if (unsent <= most) return 0;
  const int64_t dropped = unsent - most / 2;
  state_.sent += dropped;
  state_.start = state_.sent;
  state_.may_grow = false;
  resumed_ = true;  // what is in the store lies before it
  Free(state_.sent);
  return dropped;
}

}  // namespace overcap
