// SPDX-License-Identifier: Apache-2.0
// Keeps a restore away from what its caller has not looked at, or has said to keep.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unordered_set>

#include "snapshot/backup/seen.h"
#include "snapshot/restore/restore.h"
#include "snapshot/restore/staging_folder.h"

namespace overcap {

// Stands where an errno would: the entry changed after it was looked at, and was left as it is.
constexpr int kChangedMeanwhile = -1;

// May be used from several threads.
class ChangeGuard {
 public:
  explicit ChangeGuard(const RestoreRequest& request);

  // Whether anything is compared at all.
  bool on() const { return looked_ns_ != 0; }
  // Whether the caller wants this path to stay.
  bool Keeps(const std::string& path) const { return !keep_.empty() && keep_.contains(path); }
  bool KeepsAny() const { return !keep_.empty(); }

  // Whether an entry of which nothing but its name was noted may have changed since the look.
  bool IsNew(const struct statx& now) const;
  // Whether an entry is no longer what the survey found.
  bool Changed(const SeenStamp& then, const struct statx& now) const;
  // Before one of several names of a file goes: its other names get a new ctime by that.
  void NoteOwn(const struct statx& now);

  // Takes a name away: moves the entry to the staging folder, looks at what came, and moves it back when it
  // is not what `before` says, to NAME.overcap-kept where something else has its name. 0, errno, or
  // kChangedMeanwhile.
  int Remove(StagingFolder* staging, int folder_fd, const char* name, const struct statx& before);

 private:
  bool IsOwn(uint64_t inode) const;
  int64_t LatestNs() const;  // what the file system may say of a change of now

  const int64_t looked_ns_;
  const int64_t began_ns_;
  const std::unordered_set<std::string> keep_;
  mutable std::mutex mutex_;          // guards what follows
  std::unordered_set<uint64_t> own_;  // inodes
};

// What an entry is now, without following a link; "": the folder itself, or whatever is open. 0 or errno.
int LookAtName(int folder_fd, const char* name, struct statx* status);
// All but the ctime, which a rename sets.
bool SameButCtime(const struct statx& before, const struct statx& after);

}  // namespace overcap
