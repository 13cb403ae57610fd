// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/change_guard.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

// A stamp that lies further ahead is from before the clock was set back.
constexpr int64_t kFutureNs = 600'000'000'000;
constexpr int kOtherNames = 100;

int64_t NowNs(clockid_t clock) {
  struct timespec now {};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Where nothing is; 0 or errno. Of what stands in its own place, file systems without RENAME_NOREPLACE (NFS)
// can only link files and symbolic links.
int MoveWhereNothingIs(int from_fd, const char* from, int to_fd, const char* to) {
  if (renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (linkat(from_fd, from, to_fd, to, 0) != 0) return errno;
  (void)unlinkat(from_fd, from, 0);
  return 0;
}

}  // namespace

int LookAtName(int folder_fd, const char* name, struct statx* status) {
  constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH;
  return statx(folder_fd, name, kFlags, STATX_BASIC_STATS, status) == 0 ? 0 : errno;
}

bool SameButCtime(const struct statx& before, const struct statx& after) {
  return before.stx_ino == after.stx_ino && before.stx_size == after.stx_size &&
         before.stx_mode == after.stx_mode && before.stx_mtime.tv_sec == after.stx_mtime.tv_sec &&
         before.stx_mtime.tv_nsec == after.stx_mtime.tv_nsec;
}

ChangeGuard::ChangeGuard(const RestoreRequest& request)
    : looked_ns_(request.looked_ns),
      began_ns_(NowNs(CLOCK_BOOTTIME)),
      keep_(request.keep.begin(), request.keep.end()) {}

// The clock of the file system may be that of another host, and this host's may be set meanwhile.
int64_t ChangeGuard::LatestNs() const {
  const int64_t took_ns = NowNs(CLOCK_BOOTTIME) - began_ns_;
  return std::max(NowNs(CLOCK_REALTIME), looked_ns_ + took_ns) + kFutureNs;
}

bool ChangeGuard::IsNew(const struct statx& now) const {
  const SeenStamp stamp = SeenStamp::Of(now);
  const auto since = [&](int64_t time) { return time >= looked_ns_ && time <= LatestNs(); };
  if (IsOwn(now.stx_ino)) return since(stamp.mtime_ns);
  return since(stamp.ctime_ns);
}

bool ChangeGuard::Changed(const SeenStamp& then, const struct statx& now) const {
  const SeenStamp stamp = SeenStamp::Of(now);
  if (stamp.inode != then.inode || stamp.size != then.size || stamp.mtime_ns != then.mtime_ns) return true;
  if (stamp.ctime_ns != then.ctime_ns && !IsOwn(stamp.inode)) return true;
  return IsNew(now);
}

void ChangeGuard::NoteOwn(const struct statx& now) {
  if (now.stx_nlink < 2 || S_ISDIR(now.stx_mode)) return;
  const std::lock_guard lock(mutex_);
  own_.insert(now.stx_ino);
}

bool ChangeGuard::IsOwn(uint64_t inode) const {
  const std::lock_guard lock(mutex_);
  return own_.contains(inode);
}

int ChangeGuard::Remove(StagingFolder* staging, int folder_fd, const char* name, const struct statx& before) {
  NoteOwn(before);
  const int stage = staging->Open();
  const std::string aside = staging->NewName();
  if (stage < 0 || renameat(folder_fd, name, stage, aside.c_str()) != 0) {
    if (stage >= 0 && errno == ENOENT) return 0;
    // Another file system, or no room for a name: it goes from where it is.
    return unlinkat(folder_fd, name, 0) == 0 || errno == ENOENT ? 0 : errno;
  }
  struct statx after;
  if (LookAtName(stage, aside.c_str(), &after) == 0 && SameButCtime(before, after)) {
    return unlinkat(stage, aside.c_str(), 0) == 0 ? 0 : errno;
  }
  std::string back = name;
  for (int other = 1;
       MoveWhereNothingIs(stage, aside.c_str(), folder_fd, back.c_str()) == EEXIST && other <= kOtherNames;
       ++other)
    back = StrCat(std::string(name).substr(0, 200), ".overcap-kept", other > 1 ? StrCat("-", other) : "");
  return kChangedMeanwhile;
}

}  // namespace overcap
