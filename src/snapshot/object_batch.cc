// SPDX-License-Identifier: Apache-2.0
#include "snapshot/object_batch.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/file_io.h"

namespace overcap {
namespace {

constexpr int64_t kSmallFile = 1 << 20;  // read whole before anything is written
constexpr size_t kPiece = 256 << 10;
constexpr size_t kFewFiles = 16;  // so many are synced one by one; for more one syncfs is cheaper

}  // namespace

ObjectBatch::ObjectBatch(const SnapshotStore& store)
    : store_(store), prefix_(TemporaryName("object") + "-") {}

ObjectBatch::~ObjectBatch() {
  for (const Staged& staged : staged_) (void)unlinkat(store_.FolderFd(), staged.temporary.c_str(), 0);
}

Result<StoredObject> ObjectBatch::AddBytes(std::string_view bytes, ObjectKind kind) {
  const Digest id = Sha256Of(bytes);
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (Known(id, size, kind)) return StoredObject{id, size, false};
  OC_TRY(temporary, MakeTemporary());
  if (!WriteWhole(temporary.fd.Get(), bytes)) {
    const auto error = WriteError();
    (void)unlinkat(store_.FolderFd(), temporary.path.c_str(), 0);
    return error;
  }
  return Stage(id, size, kind, temporary.path);
}

Result<StoredObject> ObjectBatch::AddFile(int fd, int64_t expected_size, const std::string& path,
                                          const std::function<void(int64_t)>& on_bytes) {
  if (expected_size > kSmallFile) return AddLargeFile(fd, path, on_bytes);
  std::string content;
  if (!ReadToEnd(fd, static_cast<size_t>(expected_size), &content)) {
    return Fail(ErrnoError(errno, StrCat("cannot read '", path, "'")));
  }
  on_bytes(static_cast<int64_t>(content.size()));
  return AddBytes(content, ObjectKind::kContent);
}

Result<StoredObject> ObjectBatch::AddLargeFile(int fd, const std::string& path,
                                               const std::function<void(int64_t)>& on_bytes) {
  OC_TRY(temporary, MakeTemporary());
  const auto give_up = [&](tl::unexpected<Error> error) {
    (void)unlinkat(store_.FolderFd(), temporary.path.c_str(), 0);
    return error;
  };
  Sha256 hash;
  int64_t size = 0;
  std::string buffer(kPiece, '\0');
  while (true) {
    const ssize_t got = ReadSome(fd, buffer.data(), buffer.size());
    if (got < 0) return give_up(Fail(ErrnoError(errno, StrCat("cannot read '", path, "'"))));
    if (got == 0) break;
    hash.Update(buffer.data(), static_cast<size_t>(got));
    if (!WriteWhole(temporary.fd.Get(), std::string_view(buffer.data(), static_cast<size_t>(got)))) {
      return give_up(WriteError());
    }
    size += got;
    on_bytes(got);
  }
  return Stage(hash.Finish(), size, ObjectKind::kContent, temporary.path);
}

Result<ObjectBatch::Temporary> ObjectBatch::MakeTemporary() {
  Temporary temporary;
  temporary.path = StrCat(prefix_, count_++);
  temporary.fd =
      Fd(openat(store_.FolderFd(), temporary.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!temporary.fd) return WriteError();
  return temporary;
}

bool ObjectBatch::Known(const Digest& id, int64_t size, ObjectKind kind) {
  {
    const std::lock_guard lock(mutex_);
    if (places_.contains(ObjectPath(kind, id))) return true;
  }
  return store_.Has(kind, id, size);
}

StoredObject ObjectBatch::Stage(const Digest& id, int64_t size, ObjectKind kind,
                                const std::string& temporary) {
  const bool stored = store_.Has(kind, id, size);
  const std::string place = ObjectPath(kind, id);
  const std::lock_guard lock(mutex_);
  if (stored || !places_.insert(place).second) {
    (void)unlinkat(store_.FolderFd(), temporary.c_str(), 0);
    return StoredObject{id, size, false};
  }
  staged_.push_back({temporary, place});
  return StoredObject{id, size, true};
}

Result<void> ObjectBatch::Commit() {
  if (staged_.empty()) return {};
  OC_TRY_VOID(SyncFiles());
  std::vector<std::string> folders;
  for (const Staged& staged : staged_) OC_TRY_VOID(Place(staged, &folders));
  OC_TRY_VOID(SyncFolders(folders));
  staged_.clear();
  return {};
}

Result<void> ObjectBatch::SyncFiles() const {
  if (!store_.Durable()) return {};
  if (staged_.size() > kFewFiles) return SyncAll();
  for (const Staged& staged : staged_) {
    const Fd fd(openat(store_.FolderFd(), staged.temporary.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd || fdatasync(fd.Get()) != 0) return WriteError();
  }
  return {};
}

Result<void> ObjectBatch::SyncFolders(const std::vector<std::string>& folders) const {
  if (!store_.Durable()) return {};
  if (folders.size() > kFewFiles) return SyncAll();
  for (const std::string& folder : folders) {
    const Fd fd(openat(store_.FolderFd(), folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || fsync(fd.Get()) != 0) return WriteError();
  }
  return {};
}

Result<void> ObjectBatch::SyncAll() const {
  if (syncfs(store_.FolderFd()) != 0) return WriteError();
  return {};
}

// Adds the folders whose entries it changed to `folders`.
Result<void> ObjectBatch::Place(const Staged& staged, std::vector<std::string>* folders) const {
  const auto changed = [&](const std::string& folder) {
    if (std::find(folders->begin(), folders->end(), folder) == folders->end()) folders->push_back(folder);
  };
  const int fd = store_.FolderFd();
  const std::string folder = staged.place.substr(0, staged.place.rfind('/'));
  if (renameat(fd, staged.temporary.c_str(), fd, staged.place.c_str()) != 0) {
    if (errno != ENOENT || (mkdirat(fd, folder.c_str(), 0700) != 0 && errno != EEXIST)) return WriteError();
    changed(folder.substr(0, folder.find('/')));
    if (renameat(fd, staged.temporary.c_str(), fd, staged.place.c_str()) != 0) return WriteError();
  }
  changed(folder);
  return {};
}

tl::unexpected<Error> ObjectBatch::WriteError() const {
  return Fail(ErrnoError(errno, StrCat("cannot write to the store '", store_.Folder(), "'")));
}

}  // namespace overcap
