// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/node_folder.h"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "control/expand_folder.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int kTries = 20;

std::string LockOf(const std::string& folder) {
  return folder + "/.lock";
}

// kConflict: somebody else has it, or the folder went away meanwhile.
Result<Fd> Lock(const std::string& folder, int flags) {
  Fd fd(open(LockOf(folder).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
  if (!fd) {
    const bool gone = errno == ENOENT;
    Error error = ErrnoError(errno, StrCat("cannot open '", LockOf(folder), "'"));
    if (gone) error.code = ErrorCode::kConflict;
    return Fail(std::move(error));
  }
  struct stat ours {
  }, there{};
  if (flock(fd.Get(), LOCK_EX | LOCK_NB) != 0)
    return Fail(ErrorCode::kConflict, StrCat("'", folder, "' is in use"));
  if (fstat(fd.Get(), &ours) != 0 || stat(LockOf(folder).c_str(), &there) != 0 || ours.st_ino != there.st_ino)
    return Fail(ErrorCode::kConflict, StrCat("'", folder, "' was removed meanwhile"));
  return fd;
}

}  // namespace

Result<std::string> NodeFolderPath(const std::string& mounts_at, const Variables& variables) {
  OC_TRY(base, ExpandFolder(mounts_at.empty() ? "/tmp" : mounts_at, variables));
  return StrCat(base == "/" ? "" : base, "/overcap-mounts-", geteuid());
}

Result<std::string> OpenNodeFolder(const std::string& path) {
  const std::string base = path.substr(0, path.rfind('/'));
  if (!base.empty() && access(base.c_str(), F_OK) != 0) OC_TRY_VOID(PosixFiles().MakeFolders(base));
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return Fail(ErrnoError(errno, StrCat("cannot make '", path, "' for mounts")));
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return Fail(ErrnoError(errno, StrCat("cannot look at '", path, "'")));
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 0077) != 0)
    return Fail(ErrorCode::kDenied, StrCat("'", path, "' is not this user's own folder (mode 0700)"),
                "remove it, or set 'mounts_at' of the cluster to another folder");
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  if (!real) return Fail(ErrnoError(errno, StrCat("cannot look at '", path, "'")));
  return std::string(real.get());
}

Result<SlotFolder> SlotFolder::Make(const std::string& node_folder, const std::string& name) {
  const std::string path = StrCat(node_folder, "/", name);
  Error last;
  for (int i = 0; i < kTries; ++i) {  // whoever clears up may take it in the moment before we have the lock
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
      return Fail(ErrnoError(errno, StrCat("cannot make '", path, "'")));
    auto lock = Lock(path, O_CREAT);
    if (lock) return SlotFolder(path, std::move(*lock));
    last = std::move(lock).error();
    if (last.code != ErrorCode::kConflict) break;
    usleep(50'000);
  }
  return Fail(std::move(last));
}

Result<SlotFolder> SlotFolder::Take(const std::string& path) {
  OC_TRY(lock, Lock(path, O_CREAT));
  return SlotFolder(path, std::move(lock));
}

bool SlotFolder::IsHeldBefore(const std::string& node_folder, const std::string& job, int attempt, int slot) {
  for (int before = 1; before < attempt; ++before) {
    const std::string path = StrCat(node_folder, "/", job, ".", before, ".", slot);
    if (access(LockOf(path).c_str(), F_OK) != 0) continue;
    const auto taken = Take(path);
    if (!taken && taken.error().code == ErrorCode::kConflict) return true;
  }
  return false;
}

MountPlaces SlotFolder::PlacesOf(const std::string& mount) const {
  const std::string beside = StrCat(path_, "/.", mount);  // no mount's name begins with a dot
  // blobfuse2 reads no file whose name ends otherwise.
  return {StrCat(path_, "/", mount), beside + ".cache", beside + ".yaml"};
}

Result<void> SlotFolder::Remove() {
  PosixFiles files;
  OC_TRY(names, files.List(path_));
  for (const std::string& name : names) {
    if (name != ".lock" && name != ".mounts.json")
      return Fail(ErrorCode::kConflict, StrCat("'", path_, "/", name, "' is still there"));
  }
  OC_TRY_VOID(files.Remove(Record()));
  OC_TRY_VOID(files.Remove(LockOf(path_)));
  if (rmdir(path_.c_str()) != 0 && errno != ENOENT)
    return Fail(ErrnoError(errno, StrCat("cannot remove '", path_, "'")));
  return {};
}

}  // namespace overcap
