// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/large_files.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>
#include <utility>

namespace overcap {
namespace {

int PwriteWhole(int fd, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(fd, bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += put;
  }
  return 0;
}

}  // namespace

uint32_t LargeFiles::Add(uint32_t entry) {
  files_.emplace_back().made.entry = entry;
  return static_cast<uint32_t>(files_.size() - 1);
}

void LargeFiles::Write(uint32_t number, int64_t offset, std::string_view bytes, FileMaker* maker) {
  LargeFile& file = files_[number];
  int fd = -1, error = 0;
  bool failed;
  {
    const std::lock_guard lock(mutex_);
    failed = file.failed;
    if (!failed) error = Acquire(&file, maker);
    if (!failed && error == 0) {
      fd = file.made.fd.Get();
      ++file.writers;
    }
  }
  const bool had_fd = fd >= 0;
  if (had_fd) error = PwriteWhole(fd, bytes, offset);
  if (had_fd && error == 0) scene_.ledger.Wrote(0, static_cast<int64_t>(bytes.size()));
  const std::lock_guard lock(mutex_);
  if (error != 0 && !file.failed) {
    file.failed = true;
    scene_.ledger.ErrnoProblem(file.made.entry, "cannot be written", error);
  }
  PartDone(&file, had_fd, maker);
}

void LargeFiles::FailPart(uint32_t number, const std::string& what, FileMaker* maker) {
  const std::lock_guard lock(mutex_);
  Failed(&files_[number], what);
  PartDone(&files_[number], false, maker);
}

void LargeFiles::Settle(uint32_t number, const std::string& what, FileMaker* maker) {
  const std::lock_guard lock(mutex_);
  LargeFile& file = files_[number];
  if (!what.empty()) Failed(&file, what);
  file.all_known = true;
  if (file.parts_left == 0 && !file.settled) End(&file, maker);
}

void LargeFiles::DropUnfinished(FileMaker* maker) {
  const std::lock_guard lock(mutex_);
  for (LargeFile& file : files_) {
    if (file.begun && !file.settled) maker->Drop(&file.made);
    file.settled = true;
  }
}

int LargeFiles::Acquire(LargeFile* file, FileMaker* maker) {
  file->used = ++ticks_;
  if (file->made.fd) return 0;
  if (open_.size() >= kKeptOpen) CloseOneIdle();
  const int error = file->begun ? maker->Reopen(&file->made) : maker->Begin(file->made.entry, &file->made);
  if (error != 0) return error;
  file->begun = true;
  open_.push_back(static_cast<uint32_t>(file - files_.data()));
  return 0;
}

void LargeFiles::CloseOneIdle() {
  auto oldest = open_.end();
  for (auto at = open_.begin(); at != open_.end(); ++at) {
    if (files_[*at].writers == 0 && (oldest == open_.end() || files_[*at].used < files_[*oldest].used))
      oldest = at;
  }
  if (oldest == open_.end()) return;
  FileMaker::Close(&files_[*oldest].made);
  open_.erase(oldest);
}

void LargeFiles::PartDone(LargeFile* file, bool had_fd, FileMaker* maker) {
  if (had_fd) --file->writers;
  if (--file->parts_left == 0 && file->all_known) End(file, maker);
}

void LargeFiles::Failed(LargeFile* file, const std::string& what) {
  if (std::exchange(file->failed, true)) return;
  scene_.ledger.Problem(file->made.entry, what);
}

// After the last part; nobody writes any more.
void LargeFiles::End(LargeFile* file, FileMaker* maker) {
  file->settled = true;
  const uint32_t entry = file->made.entry;
  int error = 0;
  if (!file->failed) {
    error = Acquire(file, maker);
    if (error == 0 && file->ends_in_hole && ftruncate(file->made.fd.Get(), scene_.tree[entry].size) != 0)
      error = errno;
  }
  std::erase(open_, static_cast<uint32_t>(file - files_.data()));
  if (error == 0 && !file->failed) {
    error = maker->Finish(&file->made);
    if (error == 0) scene_.ledger.Wrote(1, 0);
  } else if (file->begun) {
    maker->Drop(&file->made);
  }
  if (error != 0) scene_.ledger.ErrnoProblem(entry, "cannot be written", error);
  scene_.survey.states[entry] = file->failed || error != 0 ? EntryState::kFailed : EntryState::kMade;
}

}  // namespace overcap
