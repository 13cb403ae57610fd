// SPDX-License-Identifier: Apache-2.0
#include "snapshot/store.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/file_io.h"
#include "snapshot/folder_list.h"
#include "snapshot/object_batch.h"
#include "sys/random.h"
#include "sys/spread_folders.h"

namespace overcap {
namespace {

constexpr int64_t kLockPollMs = 2;

// Makes `folder` and those above it that are missing.
bool MakeFolders(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return true;
  const size_t slash = folder.rfind('/');
  if (errno != ENOENT || slash == std::string::npos || slash == 0) return false;
  return MakeFolders(folder.substr(0, slash)) && (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST);
}

const Clock* SystemClock() {
  static const PosixClock clock;
  return &clock;
}

std::string_view KindName(ObjectKind kind) {
  return kind == ObjectKind::kTree ? "tree" : "object";
}

}  // namespace

std::string ObjectPath(ObjectKind kind, const Digest& id) {
  std::string path = id.Hex();
  path.insert(2, 1, '/');
  path.insert(0, kind == ObjectKind::kTree ? "trees/" : "objects/");
  return path;
}

std::string TemporaryName(std::string_view what) {
  KernelRandom random;
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(random.Next()));
  return StrCat("tmp/", what, "-", digits);
}

Result<SnapshotStore> SnapshotStore::Open(const std::string& folder, StoreOptions options) {
  if (options.clock == nullptr) options.clock = SystemClock();
  Fd fd;
  if (MakeFolders(folder)) fd = Fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open the store '", folder, "'")));
  bool changed = false;
  for (const char* name : {"objects", "trees", "captures", "spare", "tmp"}) {
    if (mkdirat(fd.Get(), name, 0700) == 0) {
      changed = true;
      if (name == std::string_view("tmp")) SpreadFolders(fd.Get(), name);  // spares are made there
    } else if (errno != EEXIST) {
      return Fail(ErrnoError(errno, StrCat("cannot make '", folder, "/", name, "'")));
    }
  }
  if (changed && options.durable) (void)fsync(fd.Get());
  return SnapshotStore(folder, std::move(fd), options);
}

Result<std::string> SnapshotStore::PutBlob(std::string_view bytes) const {
  OC_TRY(lock, LockShared());
  ObjectBatch batch(*this);
  OC_TRY(stored, batch.AddBytes(bytes, ObjectKind::kContent));
  OC_TRY_VOID(batch.Commit());
  if (!stored.is_new) Touch(ObjectKind::kContent, stored.id);
  return stored.id.Hex();
}

Result<std::string> SnapshotStore::GetBlob(std::string_view id) const {
  Result<std::string> bytes = Get(ObjectKind::kContent, id);
  if (!bytes && bytes.error().code == ErrorCode::kCorrupt) {
    DropDamaged(ObjectKind::kContent, *Digest::FromHex(id));
  }
  return bytes;
}

Result<std::vector<TreeEntry>> SnapshotStore::ReadTree(std::string_view id) const {
  OC_TRY(text, Get(ObjectKind::kTree, id));
  return DecodeTree(text, id);
}

Result<std::vector<TreeEntry>> SnapshotStore::ReadTreeOrDrop(std::string_view id) const {
  Result<std::vector<TreeEntry>> entries = ReadTree(id);
  if (!entries && entries.error().code == ErrorCode::kCorrupt) {
    DropDamaged(ObjectKind::kTree, *Digest::FromHex(id));
  }
  return entries;
}

Result<std::string> SnapshotStore::Get(ObjectKind kind, std::string_view id) const {
  const std::optional<Digest> digest = Digest::FromHex(id);
  if (!digest) return Fail(ErrorCode::kUsage, StrCat("'", id, "' is no id of a stored ", KindName(kind)));
  Result<std::string> bytes = ReadFileAt(fd_.Get(), ObjectPath(kind, *digest));
  if (!bytes && bytes.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound,
                StrCat(KindName(kind), " '", id, "' is not in the store '", folder_, "'"));
  }
  if (bytes && Sha256Of(*bytes) != *digest) {
    return Fail(ErrorCode::kCorrupt, StrCat(KindName(kind), " '", id, "' in the store '", folder_,
                                            "' is damaged: its content has changed"));
  }
  return bytes;
}

Result<Fd> SnapshotStore::Lock(bool exclusive) const {
  Fd fd(openat(fd_.Get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open '", folder_, "/lock'")));
  const int how = (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB;
  for (int64_t waited = 0; flock(fd.Get(), how) != 0; waited += kLockPollMs) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return Fail(ErrnoError(errno, StrCat("cannot lock '", folder_, "'")));
    }
    if (waited >= options_.lock_timeout_ms) {
      return Fail(ErrorCode::kUnavailable, StrCat("the store '", folder_, "' is busy"),
                  "try again in a while");
    }
    const timespec pause{0, kLockPollMs * 1'000'000};
    nanosleep(&pause, nullptr);
  }
  return fd;
}

bool SnapshotStore::Has(ObjectKind kind, const Digest& id, int64_t size) const {
  struct stat status;
  return fstatat(fd_.Get(), ObjectPath(kind, id).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(status.st_mode) && status.st_size == size;
}

void SnapshotStore::Touch(ObjectKind kind, const Digest& id) const {
  const int64_t now = NowUs();
  const timespec time{now / 1'000'000, now % 1'000'000 * 1000};
  const timespec times[2] = {time, time};
  (void)utimensat(fd_.Get(), ObjectPath(kind, id).c_str(), times, AT_SYMLINK_NOFOLLOW);
}

void SnapshotStore::DropDamaged(ObjectKind kind, const Digest& id) const {
  const std::string path = ObjectPath(kind, id);
  const Fd fd(openat(fd_.Get(), path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat read;
  struct stat named;
  int64_t bytes = 0;
  const std::optional<Digest> now = fd ? HashToEnd(fd.Get(), &bytes) : std::nullopt;
  // Only what was read just now: another may have put the right bytes in its place meanwhile.
  if (now && *now != id && fstat(fd.Get(), &read) == 0 &&
      fstatat(fd_.Get(), path.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && read.st_ino == named.st_ino) {
    (void)unlinkat(fd_.Get(), path.c_str(), 0);
  }
  for (const ListedFile& file : ListFolder(fd_.Get(), "captures")) {
    (void)unlinkat(fd_.Get(), StrCat("captures/", file.name).c_str(), 0);
  }
}

}  // namespace overcap
