// SPDX-License-Identifier: Apache-2.0
#include "stores/file/file_store.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "stores/file/file_errors.h"
#include "stores/file/file_upload.h"
#include "stores/file/folder_keys.h"
#include "stores/file/partial_upload.h"
#include "sys/fresh_open.h"

namespace overcap {
namespace {

constexpr size_t kReadAhead = size_t{1} << 20;

// People have folders of very many files, and each page reads the folder anew.
size_t PageSize(KeyRule rule) {
  return rule == KeyRule::kAny ? 32'768 : 4096;
}

Fd OpenFolder(const std::string& folder) {
  return OpenRetrying(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
}

void ForgetStale(int root, const std::string& key, int error, Fd* fd) {
  if (error != ESTALE) return;
  fd->Reset();  // while it is open the next open gives the same
  AskAnew(root, key);
}

// mkdir -p, each new name durable. What is there already may be of others: it is not touched.
int MakeFolderAt(const std::string& folder, const FilePutManner& manner) {
  size_t end = folder.size();
  Fd above;
  while (!above && end > 0) {
    end = folder.rfind('/', end - 1);
    above = OpenRetrying(AT_FDCWD, folder.substr(0, std::max<size_t>(end, 1)), O_PATH | O_DIRECTORY);
    if (!above && errno != ENOENT) return errno;
  }
  if (!above) return errno;
  return MakeFoldersBelow(above.Get(), folder.substr(end + 1) + "/", manner);
}

std::string WithoutEndSlashes(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

// All of [offset, offset + out->size()) or an errno; `out` gets shorter when the file is.
int ReadAt(int fd, int64_t offset, std::string* out) {
  size_t filled = 0;
  while (filled < out->size()) {
    const ssize_t n =
        pread(fd, out->data() + filled, out->size() - filled, offset + static_cast<int64_t>(filled));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  out->resize(filled);
  return 0;
}

}  // namespace

Result<std::unique_ptr<FileStore>> FileStore::Open(const std::string& folder, bool create, FilePutHook hook) {
  FileStoreOptions options;
  options.create = create;
  options.manner.hook = std::move(hook);
  return Open(folder, std::move(options));
}

Result<std::unique_ptr<FileStore>> FileStore::Open(const std::string& folder, FileStoreOptions options) {
  const std::string clean = WithoutEndSlashes(folder);
  if (!clean.starts_with('/'))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(folder, 200), " is not an absolute path"));
  auto root = std::make_shared<Fd>(OpenFolder(clean));
  if (!*root && errno == ENOENT && options.create) {
    FilePutManner unhooked = options.manner;
    unhooked.hook = nullptr;
    if (const int error = MakeFolderAt(clean, unhooked); error != 0)
      return Fail(FileStoreError(error, "make", "", clean));
    *root = OpenFolder(clean);
  }
  if (*root) return std::unique_ptr<FileStore>(new FileStore(clean, std::move(root), std::move(options)));
  if (errno == ENOENT) return Fail(ErrorCode::kNotFound, StrCat("there is no folder ", Quoted(clean, 500)));
  if (errno == ENOTDIR) return Fail(ErrorCode::kUsage, StrCat(Quoted(clean, 500), " is not a folder"));
  return Fail(FileStoreError(errno, "open", "", clean));
}

std::shared_ptr<const Fd> FileStore::Root() const {
  const std::lock_guard lock(mutex_);
  return root_;
}

int FileStore::WithRoot(const std::function<int(int root)>& act) const {
  int error = 0;
  for (int i = 0; i < kStaleTries; ++i) {
    error = act(Root()->Get());
    if (error != ESTALE) return error;
    auto again = std::make_shared<Fd>(OpenFolder(folder_));
    const std::lock_guard lock(mutex_);
    if (*again) root_ = std::move(again);
  }
  return error;
}

Result<void> FileStore::Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  const int error =
      WithRoot([&](int root) { return PutObjectFile(root, key, pieces, mode, options_.manner); });
  if (error == 0) return {};
  if (error == EEXIST && mode == PutMode::kCreate)
    return Fail(ErrorCode::kConflict,
                StrCat("there is a ", Quoted(key, 200), " in store ", Quoted(folder_, 500), " already"));
  return Fail(FileStoreError(error, "write", key, folder_));
}

// Objects are opened even to be looked at: over NFS an open asks the server, a stat may not.
int FileStore::OpenObject(const std::string& key, Fd* fd, StoredObjectInfo* info) const {
  return WithRoot([&](int root) {
    *fd = OpenKey(root, key, O_RDONLY | O_NONBLOCK, options_.keys);
    struct stat found {};
    if (!*fd) return errno == ENOTDIR ? ENOENT : errno;
    if (fstat(fd->Get(), &found) != 0) {
      const int error = errno;
      ForgetStale(root, key, error, fd);
      return error;
    }
    if (!S_ISREG(found.st_mode)) return S_ISDIR(found.st_mode) ? ENOENT : kNoFile;
    *info = FileInfo(key, found);
    return 0;
  });
}

tl::unexpected<Error> FileStore::CannotRead(int error, const std::string& key) const {
  if (error == ENOENT)
    return Fail(ErrorCode::kNotFound,
                StrCat("there is no ", Quoted(key, 200), " in store ", Quoted(folder_, 500)));
  return Fail(FileStoreError(error, "read", key, folder_));
}

Result<void> FileStore::GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                                  std::string* out) const {
  const std::string& key = object.key;
  OC_TRY_VOID(ValidKey(key, options_.keys));
  OC_TRY_VOID(ValidRange(key, offset, limit));
  int error = ESTALE;
  // What another host removed while it was open here is stale: opened anew it is gone, or replaced.
  for (int i = 0; i < kStaleTries && error == ESTALE; ++i) {
    Fd fd;
    StoredObjectInfo now;
    if (const int closed = OpenObject(key, &fd, &now); closed != 0) return CannotRead(closed, key);
    if (!object.version.empty() && object.version != now.version)
      return Fail(ErrorCode::kConflict,
                  StrCat(Quoted(key, 200), " in store ", Quoted(folder_, 500), " changed while it was read"));
    out->resize(static_cast<size_t>(std::clamp<int64_t>(now.size - offset, 0, limit)));
    // From a disk: all of it in one go, and what is likely to be asked for next, instead of bit by bit.
    if (out->size() >= kReadAhead)
      (void)posix_fadvise(fd.Get(), offset, 2 * static_cast<off_t>(out->size()), POSIX_FADV_WILLNEED);
    error = ReadAt(fd.Get(), offset, out);
    ForgetStale(Root()->Get(), key, error, &fd);
  }
  // A bad sector is the matter of this object alone: others can still be read.
  if (error == EIO)
    return Fail(ErrorCode::kCorrupt, FileStoreError(error, "read", key, folder_).message,
                "see whether the disk is well ('dmesg'), then try again");
  if (error != 0) return CannotRead(error, key);
  return {};
}

Result<StoredObjectInfo> FileStore::Stat(const std::string& key) const {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  Fd fd;
  StoredObjectInfo info;
  if (const int error = OpenObject(key, &fd, &info); error != 0) return CannotRead(error, key);
  return info;
}

Result<StorePage> FileStore::List(const std::string& prefix, const std::string& next) const {
  OC_TRY_VOID(ValidListing(prefix, next, options_.keys));
  StorePage page;
  std::string failed;
  const int error = WithRoot([&](int root) {
    page = {};
    return ListFolderKeys(root, prefix, next, PageSize(options_.keys), options_.keys, &page, &failed);
  });
  if (error != 0) return Fail(FileStoreError(error, "list", failed, folder_));
  return page;
}

Result<void> FileStore::Remove(const std::string& key) {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  const int error = WithRoot([&](int root) {
    const size_t slash = key.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : key.substr(0, slash);
    const Fd fd = OpenKey(root, folder, O_PATH | O_DIRECTORY, options_.keys);
    return fd && unlinkat(fd.Get(), key.c_str() + (slash == std::string::npos ? 0 : slash + 1), 0) == 0
               ? 0
               : errno;
  });
  // A folder is no object: there is nothing under this key.
  if (error == 0 || error == ENOENT || error == ENOTDIR || error == EISDIR) return {};
  return Fail(FileStoreError(error, "remove", key, folder_));
}

Result<int64_t> FileStore::CleanUp(int64_t older_than_us) {
  int64_t removed = 0;
  std::string failed;
  const int error = WithRoot([&](int root) {
    // What the time is says the file system itself: the clock of this host may be another.
    std::string probe;
    Fd fd;
    struct stat now {};
    if (const int cannot = OpenTemporary(root, "", 0600, &probe, &fd); cannot != 0) return cannot;
    if (fstat(fd.Get(), &now) != 0) return errno;
    const int64_t oldest = ModifiedUs(now) - older_than_us;
    const int stopped = VisitTemporaries(
        root, options_.keys,
        [&](const std::string& path, int64_t modified_us) {
          if (path != probe && modified_us <= oldest && unlinkat(root, path.c_str(), 0) == 0) ++removed;
        },
        &failed);
    unlinkat(root, probe.c_str(), 0);
    return stopped;
  });
  if (error != 0) return Fail(FileStoreError(error, "clean up", failed, folder_));
  return removed;
}

Result<std::unique_ptr<StoreUpload>> FileStore::StartUpload(const std::string& key, int64_t size,
                                                            PutMode mode) {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  FileUpload::Target target{folder_, Root(), key, size, mode, options_.manner};
  OC_TRY(upload, FileUpload::Start(std::move(target)));
  return std::unique_ptr<StoreUpload>(std::move(upload));
}

Result<std::unique_ptr<StoreUpload>> FileStore::ResumeUpload(const std::string& key, int64_t size,
                                                             PutMode mode, const std::string& identity,
                                                             int64_t part_size) {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  FileUpload::Target target{folder_, Root(), key, size, mode, options_.manner};
  if (part_size > 0) target.part_size = part_size;
  OC_TRY(upload, PartialUpload::Start(target, identity));
  if (upload) return std::unique_ptr<StoreUpload>(std::move(upload));
  OC_TRY(own, FileUpload::Start(std::move(target)));  // another process is at it
  return std::unique_ptr<StoreUpload>(std::move(own));
}

Result<void> FileStore::SetModified(const std::string& key, int64_t modified_us) {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  const int64_t seconds = modified_us / 1'000'000 - (modified_us % 1'000'000 < 0 ? 1 : 0);
  const timespec times[2] = {{0, UTIME_OMIT}, {seconds, (modified_us - seconds * 1'000'000) * 1000}};
  const int error =
      WithRoot([&](int root) { return utimensat(root, key.c_str(), times, 0) == 0 ? 0 : errno; });
  if (error == 0) return {};
  return Fail(FileStoreError(error, "set the time of", key, folder_));
}

Result<void> FileStore::Flush() {
  if (options_.manner.durable) return {};
  const int error = WithRoot([](int root) { return syncfs(root) == 0 ? 0 : errno; });
  if (error != 0) return Fail(FileStoreError(error, "write", "", folder_));
  return {};
}

}  // namespace overcap
