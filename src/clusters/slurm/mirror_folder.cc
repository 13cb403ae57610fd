// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/mirror_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::string_view kNewPrefix = ".new-";
constexpr int64_t kKeepNewS = 600, kKeepS = 7 * 86400, kSweepEveryS = 600;
constexpr const char* kSwept = "swept";
constexpr useconds_t kSharingUs = 1000;

tl::unexpected<Error> Errno(std::string_view what, const std::string& path) {
  return Fail(ErrnoError(errno, StrCat("cannot ", what, " '", path, "'")));
}

bool Has(const std::vector<uid_t>& users, uid_t user) {
  return std::find(users.begin(), users.end(), user) != users.end();
}

Fd OpenAt(int folder, const std::string& name, int flags, mode_t mode = 0) {
  int fd;
  do {
    fd = openat(folder, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode);
  } while (fd < 0 && errno == EINTR);
  return Fd(fd);
}

std::optional<std::string> ReadSome(int fd, size_t limit) {
  std::string out(limit, '\0');
  size_t filled = 0;
  while (filled < limit) {
    const ssize_t n = pread(fd, out.data() + filled, limit - filled, static_cast<off_t>(filled));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  out.resize(filled);
  return out;
}

// An error number, 0 for none. flock() does not wait here, but on NFS it can be interrupted.
int LockNow(int fd) {
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

bool IsOld(std::string_view name, int64_t age_s) {
  if (name.starts_with(kNewPrefix)) return age_s > kKeepNewS;
  return (name.ends_with(".text") || name.ends_with(".failed")) && age_s > kKeepS;
}

}  // namespace

Result<MirrorFolder> MirrorFolder::Open(const std::string& path) {
  Fd fd = OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!fd) return Errno("open folder", path);
  MirrorFolder folder(path, std::move(fd));
  if (fstat(folder.fd_.Get(), &folder.info_) != 0) return Errno("look at folder", path);
  return folder;
}

Result<MirrorFolder> MirrorFolder::OpenOwn(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno == ENOENT) {
    PosixFiles files;
    OC_TRY_VOID(files.MakeFolders(path));
  }
  OC_TRY(folder, Open(path));
  if (folder.info_.st_uid != geteuid() || (folder.info_.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(ErrorCode::kDenied, StrCat("others can write in the mirror folder '", path, "'"),
                StrCat("remove it, or make it yours alone: chmod 700 ", ShellQuote(path)));
  }
  folder.writable_ = true;
  return folder;
}

Result<MirrorFolder> MirrorFolder::OpenShared(const std::string& path, std::vector<uid_t> trusted) {
  OC_TRY(folder, Open(path));
  const uid_t owner = folder.info_.st_uid;
  if (owner != 0 && owner != geteuid() && !Has(trusted, owner)) {
    return Fail(ErrorCode::kDenied,
                StrCat("the mirror folder '", path, "' belongs to user ", owner, ", who is not trusted"),
                "it must belong to root or to a user that the configuration trusts");
  }
  if ((folder.info_.st_mode & S_IWOTH) != 0) {
    return Fail(ErrorCode::kDenied, StrCat("everybody can write in the mirror folder '", path, "'"),
                "let a group write in it instead: chmod 2770");
  }
  // In a sticky folder only its owner can replace the files of others.
  const bool replaces = (folder.info_.st_mode & S_ISVTX) == 0 || owner == geteuid();
  folder.shared_ = true;
  folder.writable_ = replaces && faccessat(folder.fd_.Get(), ".", W_OK | X_OK, AT_EACCESS) == 0;
  folder.trusted_ = std::move(trusted);
  return folder;
}

bool MirrorFolder::Believes(const struct stat& file) const {
  if (!S_ISREG(file.st_mode) || file.st_nlink != 1) return false;
  if (file.st_uid == geteuid()) return true;
  if (!shared_) return false;
  return file.st_uid == info_.st_uid || file.st_uid == 0 || Has(trusted_, file.st_uid) ||
         (info_.st_mode & S_IWGRP) != 0;
}

Fd MirrorFolder::OpenBelieved(const std::string& name, struct stat* info) const {
  Fd fd = OpenAt(fd_.Get(), name, O_RDONLY);
  if (!fd || fstat(fd.Get(), info) != 0 || !Believes(*info)) return Fd();
  if ((info->st_mode & (S_IWGRP | S_IWOTH)) != 0) return Fd();
  return fd;
}

std::optional<std::string> MirrorFolder::Head(const std::string& name, size_t limit) const {
  struct stat info {};
  const Fd fd = OpenBelieved(name, &info);
  if (!fd) return std::nullopt;
  return ReadSome(fd.Get(), std::min(limit, static_cast<size_t>(info.st_size)));
}

std::optional<std::string> MirrorFolder::Load(const std::string& name, size_t limit) const {
  struct stat info {};
  const Fd fd = OpenBelieved(name, &info);
  if (!fd || static_cast<size_t>(info.st_size) > limit) return std::nullopt;
  return ReadSome(fd.Get(), static_cast<size_t>(info.st_size));
}

Result<void> MirrorFolder::Replace(const std::string& name, std::string_view head, std::string_view body,
                                   Random* random) const {
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(random->Next()));
  const std::string temporary = StrCat(kNewPrefix, hex);
  const std::string shown = StrCat(path_, "/", name);
  const Fd fd = OpenAt(fd_.Get(), temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!fd) return Errno("write", shown);
  int error = WriteAll(fd.Get(), head);
  if (error == 0) error = WriteAll(fd.Get(), body);
  if (error == 0 && shared_ && fchmod(fd.Get(), 0644) != 0) error = errno;
  if (error == 0 && renameat(fd_.Get(), temporary.c_str(), fd_.Get(), name.c_str()) != 0) error = errno;
  if (error == 0) return {};
  unlinkat(fd_.Get(), temporary.c_str(), 0);
  errno = error;
  return Errno("write", shown);
}

// Only those who may write in the folder can open it: who cannot ask must not keep others from asking.
Result<Fd> MirrorFolder::OpenLock(const std::string& name) const {
  for (int tries = 0; tries < 100; ++tries) {
    Fd fd = OpenAt(fd_.Get(), name, O_RDWR);
    if (fd) return fd;
    if (errno == EACCES && shared_ && faccessat(fd_.Get(), ".", W_OK, AT_EACCESS) == 0) {
      usleep(kSharingUs);  // somebody has just made it and not shared it yet
      errno = EACCES;
      continue;
    }
    if (errno != ENOENT) break;
    fd = OpenAt(fd_.Get(), name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (!fd && errno == EEXIST) continue;
    if (!fd) break;
    if (shared_ && (fchown(fd.Get(), static_cast<uid_t>(-1), info_.st_gid) == 0)) {
      if (fchmod(fd.Get(), 0660) != 0) return Errno("share", StrCat(path_, "/", name));
    }
    return fd;
  }
  return Errno("lock", StrCat(path_, "/", name));
}

Result<std::optional<MirrorLock>> MirrorFolder::TryLock(const std::string& name) const {
  for (int tries = 0; tries < 100; ++tries) {
    OC_TRY(fd, OpenLock(name));
    struct stat info {};
    if (fstat(fd.Get(), &info) != 0 || !Believes(info)) {
      // Removed by BreakLock() since it was opened, or none of ours.
      if (info.st_nlink == 0) continue;
      return Fail(ErrorCode::kDenied,
                  StrCat("the lock '", path_, "/", name, "' is not a file to be trusted"));
    }
    if (const int error = LockNow(fd.Get()); error == EWOULDBLOCK) {
      return std::optional<MirrorLock>();
    } else if (error != 0) {
      errno = error;
      return Errno("lock", StrCat(path_, "/", name));
    }
    if (LockFile(name) == info.st_ino) return std::optional<MirrorLock>(MirrorLock{std::move(fd)});
  }
  return std::optional<MirrorLock>();
}

ino_t MirrorFolder::LockFile(const std::string& name) const {
  struct stat info {};
  return fstatat(fd_.Get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_ino : 0;
}

// Two that break it at once must not break each other's new lock: the folder itself is locked meanwhile, by a
// descriptor of its own.
void MirrorFolder::BreakLock(const std::string& name, ino_t held) const {
  const Fd guard = OpenAt(fd_.Get(), ".", O_RDONLY | O_DIRECTORY);
  if (!guard || LockNow(guard.Get()) != 0) return;
  if (held != 0 && LockFile(name) == held) unlinkat(fd_.Get(), name.c_str(), 0);
}

// Whether it is time again, which is written down as the time of a file: where many clusters were looked at
// there are thousands of files.
bool MirrorFolder::SweepIsDue(int64_t now_s) const {
  struct stat swept {};
  if (fstatat(fd_.Get(), kSwept, &swept, AT_SYMLINK_NOFOLLOW) == 0 &&
      std::abs(now_s - swept.st_mtime) < kSweepEveryS)
    return false;
  unlinkat(fd_.Get(), kSwept, 0);  // of another user, who may not be here any more
  const Fd stamp = OpenAt(fd_.Get(), kSwept, O_WRONLY | O_CREAT | O_EXCL, 0600);
  const timespec times[2] = {{now_s, 0}, {now_s, 0}};
  if (stamp) (void)futimens(stamp.Get(), times);
  return true;
}

void MirrorFolder::Sweep(int64_t now_s) const {
  if (!SweepIsDue(now_s)) return;
  Fd list = OpenAt(fd_.Get(), ".", O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(list ? fdopendir(list.Get()) : nullptr,
                                                   [](DIR* dir) { return dir ? closedir(dir) : 0; });
  if (!folder) return;
  (void)list.Release();
  while (const dirent* entry = readdir(folder.get())) {
    struct stat info {};
    if (fstatat(fd_.Get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (IsOld(entry->d_name, now_s - info.st_mtime)) unlinkat(fd_.Get(), entry->d_name, 0);
  }
}

}  // namespace overcap
