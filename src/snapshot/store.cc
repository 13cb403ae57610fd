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
#include "snapshot/folder_list.h"
#include "snapshot/repository/condemned_list.h"
#include "snapshot/repository/object_keys.h"
#include "stores/all_stores.h"
#include "sys/random.h"
#include "sys/spread_folders.h"

namespace overcap {
namespace {

constexpr int64_t kLockPollMs = 2;
constexpr char kLocal[] = ".local";  // never part of a key, so that it is nothing to the repository

const Clock* SystemClock() {
  static const PosixClock clock;
  return &clock;
}

Result<Fd> OpenLocal(const std::string& folder) {
  const std::string local = StrCat(folder, "/", kLocal);
  if (mkdir(local.c_str(), 0700) != 0 && errno != EEXIST) {
    return Fail(ErrnoError(errno, StrCat("cannot make '", local, "'")));
  }
  Fd fd(open(local.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open '", local, "'")));
  for (const char* name : {"captures", "spare", "tmp"}) {
    if (mkdirat(fd.Get(), name, 0700) == 0) {
      if (name == std::string_view("tmp")) SpreadFolders(fd.Get(), name);  // spares are made there
    } else if (errno != EEXIST) {
      return Fail(ErrnoError(errno, StrCat("cannot make '", local, "/", name, "'")));
    }
  }
  return fd;
}

Result<Repository> OpenOrCreate(const std::shared_ptr<Store>& store) {
  const Repository::Parts parts{.store = store, .clock = nullptr, .random = nullptr};
  Result<Repository> opened = Repository::Open(parts);
  if (opened || opened.error().code != ErrorCode::kNotFound) return opened;
  Result<Repository> made = Repository::Create(parts);
  if (made || made.error().code != ErrorCode::kConflict) return made;
  return Repository::Open(parts);  // somebody was faster
}

}  // namespace

std::string TemporaryName(std::string_view what) {
  KernelRandom random;
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(random.Next()));
  return StrCat("tmp/", what, "-", digits);
}

Result<Digest> ParseStoredId(std::string_view id, std::string_view what) {
  const std::optional<Digest> digest = Digest::FromHex(id);
  if (!digest) return Fail(ErrorCode::kUsage, StrCat("'", id, "' is no id of a stored ", what));
  return *digest;
}

Result<SnapshotStore> SnapshotStore::Open(const std::string& folder, StoreOptions options) {
  if (options.clock == nullptr) options.clock = SystemClock();
  std::shared_ptr<Store> objects = options.objects;
  if (objects == nullptr) {
    OC_TRY(opened, OpenStore(folder, true));
    objects = std::move(opened);
  }
  OC_TRY(local, OpenLocal(folder));
  OC_TRY(repository, OpenOrCreate(objects));
  return SnapshotStore(folder, std::move(local), std::make_shared<const Repository>(std::move(repository)),
                       std::move(options));
}

std::string SnapshotStore::LocalFolder() const {
  return StrCat(folder_, "/", kLocal);
}

Result<std::string> SnapshotStore::PutBlob(std::string_view bytes) const {
  OC_TRY(lock, LockShared());
  const Digest id = Sha256Of(bytes);
  const std::string key = BlobKey(id);
  const Result<StoredObjectInfo> there = repository_->store().Stat(key);
  if (there && there->size == static_cast<int64_t>(bytes.size())) {
    Touch(key);
  } else {
    OC_TRY_VOID(repository_->store().Put(key, bytes));
  }
  return id.Hex();
}

Result<std::string> SnapshotStore::GetBlob(std::string_view id) const {
  OC_TRY(digest, ParseStoredId(id, "environment"));
  Result<std::string> bytes = repository_->store().Get(BlobKey(digest));
  if (!bytes && bytes.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, StrCat("environment '", id, "' is not in the store '", folder_, "'"));
  }
  if (!bytes || Sha256Of(*bytes) == digest) return bytes;
  (void)repository_->store().Remove(BlobKey(digest));
  return Fail(ErrorCode::kCorrupt, StrCat("environment '", id, "' in the store '", folder_,
                                          "' is damaged: its content has changed"));
}

Result<Fd> SnapshotStore::Lock(bool exclusive) const {
  Fd fd(openat(local_.Get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open '", LocalFolder(), "/lock'")));
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

bool SnapshotStore::HasTree(const Digest& tree) const {
  const Result<StoredObjectInfo> pin = repository_->store().Stat(CodeKey(tree));
  return pin && pin->size > 0;
}

void SnapshotStore::TouchTree(const Digest& tree) const {
  Touch(CodeKey(tree));
}

// By the file itself: putting the object again would cost a disk's sync each time. Elsewhere that is the only
// way.
void SnapshotStore::Touch(const std::string& key) const {
  if (options_.objects != nullptr && !options_.objects->KeepsTimes()) {
    if (const auto bytes = options_.objects->Get(key)) (void)options_.objects->Put(key, *bytes);
    return;
  }
  const int64_t now = NowUs();
  if (options_.objects != nullptr) return (void)options_.objects->SetModified(key, now);
  const timespec time{now / 1'000'000, now % 1'000'000 * 1000};
  const timespec times[2] = {time, time};
  (void)utimensat(AT_FDCWD, StrCat(folder_, "/", key).c_str(), times, AT_SYMLINK_NOFOLLOW);
}

void SnapshotStore::DropDamaged(const std::vector<Digest>& packs) const {
  for (const Digest& pack : packs) (void)CondemnDamagedPack(*repository_, pack);
  for (const ListedFile& file : ListFolder(local_.Get(), "captures")) {
    (void)unlinkat(local_.Get(), StrCat("captures/", file.name).c_str(), 0);
  }
}

}  // namespace overcap
