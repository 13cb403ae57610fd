// SPDX-License-Identifier: Apache-2.0
// A folder that a mirror is kept in: which folders and files are believed, whole replacement, and the lock.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/types.h>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"
#include "sys/random.h"

namespace overcap {

// Held while it lives; the kernel frees it when its process dies.
struct MirrorLock {
  Fd fd;
};

class MirrorFolder {
 public:
  // Of this user alone; made, 0700, when it is missing. kDenied when somebody else could have written in it.
  static Result<MirrorFolder> OpenOwn(const std::string& path);
  // Made by an administrator. kDenied when neither root, this user nor one of `trusted` owns it, or when
  // everybody may write in it.
  static Result<MirrorFolder> OpenShared(const std::string& path, std::vector<uid_t> trusted);

  bool shared() const { return shared_; }
  bool writable() const { return writable_; }  // else one can only look
  const std::string& path() const { return path_; }

  // The first `limit` bytes of a file, or nothing when it is missing or not to be believed.
  std::optional<std::string> Head(const std::string& name, size_t limit) const;
  // The whole file; nothing too when it is longer than `limit`.
  std::optional<std::string> Load(const std::string& name, size_t limit) const;
  // Readers see the old or the new file. After a failure nothing is left.
  Result<void> Replace(const std::string& name, std::string_view head, std::string_view body,
                       Random* random) const;

  // Never waits. An empty optional: somebody else has it.
  Result<std::optional<MirrorLock>> TryLock(const std::string& name) const;
  // Which file the lock is now; 0: none. Another one means that its holder changed by BreakLock().
  ino_t LockFile(const std::string& name) const;
  // Takes the lock away from a holder that hangs, if it is still the file `held`: the next TryLock() makes
  // another.
  void BreakLock(const std::string& name, ino_t held) const;

  // Removes what crashes and older versions left behind, at most every ten minutes. `now_s`: wall time.
  void Sweep(int64_t now_s) const;

 private:
  MirrorFolder(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  static Result<MirrorFolder> Open(const std::string& path);
  bool Believes(const struct stat& file) const;
  Fd OpenBelieved(const std::string& name, struct stat* info) const;
  Result<Fd> OpenLock(const std::string& name) const;
  bool SweepIsDue(int64_t now_s) const;

  std::string path_;
  Fd fd_;
  struct stat info_ {};
  bool shared_ = false, writable_ = false;
  std::vector<uid_t> trusted_;
};

}  // namespace overcap
