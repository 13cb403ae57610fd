// SPDX-License-Identifier: Apache-2.0
#include "stores/file/object_file.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "stores/file/direct_write.h"
#include "stores/file/file_errors.h"
#include "sys/fresh_open.h"
#include "sys/random.h"

namespace overcap {
namespace {

int Before(const FilePutHook& hook, FilePutStep step) {
  return hook ? hook(step) : 0;
}

// "packs/ab/" of "packs/ab/cd"; "" of "config".
std::string FolderOfKey(const std::string& key) {
  return key.substr(0, key.rfind('/') + 1);
}

// FUSE and CIFS have file systems that cannot sync a folder: there is nothing more to be done there.
bool CannotSync(int error) {
  return error == EINVAL || error == ENOTSUP || error == ENOSYS;
}

int SyncFolderBelow(int root, const std::string& folder) {
  const Fd fd = OpenRetrying(root, folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (!fd) return errno == EACCES ? 0 : errno;  // one may write into it but not read it: as above
  return fsync(fd.Get()) == 0 || CannotSync(errno) ? 0 : errno;
}

// Over NFS an answer may get lost: the call is sent again and fails because it was done already.
bool IsNameOf(int root, const std::string& path, const struct stat& file) {
  struct stat named {};
  return fstatat(root, path.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == file.st_dev &&
         named.st_ino == file.st_ino;
}

// 0 or an errno of a step that is one call.
template <typename Call>
int Step(const FilePutHook& hook, FilePutStep step, const Call& call) {
  if (const int error = Before(hook, step); error != 0) return error;
  return call() == 0 ? 0 : errno;
}

// What a temporary is to become.
struct NewObject {
  int root;
  const std::string& temporary;
  const std::string& key;
  const struct stat& file;
};

// A rename replaces devices as well: root could lose /dev/null.
bool IsNoFile(int root, const std::string& path) {
  struct stat info {};
  return fstatat(root, path.c_str(), &info, 0) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

int Replace(const NewObject& object, const FilePutHook& hook) {
  if (IsNoFile(object.root, object.key)) return kNoFile;
  const int error = Step(hook, FilePutStep::kRename, [&] {
    return renameat(object.root, object.temporary.c_str(), object.root, object.key.c_str());
  });
  return error == ENOENT && IsNameOf(object.root, object.key, object.file) ? 0 : error;
}

// NFS and some FUSE file systems know no RENAME_NOREPLACE; there a link is what exactly one gets.
int CreateByLink(const NewObject& object, const FilePutHook& hook) {
  const int error = Step(hook, FilePutStep::kLink, [&] {
    return linkat(object.root, object.temporary.c_str(), object.root, object.key.c_str(), 0);
  });
  if (error == EPERM || error == ENOSYS) return ENOTSUP;
  if (error != 0 && !(error == EEXIST && IsNameOf(object.root, object.key, object.file))) return error;
  return Step(hook, FilePutStep::kDropTemporary,
              [&] { return unlinkat(object.root, object.temporary.c_str(), 0); });
}

int Create(const NewObject& object, const FilePutHook& hook) {
  const int error = Step(hook, FilePutStep::kRenameNew, [&] {
    return renameat2(object.root, object.temporary.c_str(), object.root, object.key.c_str(),
                     RENAME_NOREPLACE);
  });
  const bool unknown = error == EINVAL || error == ENOSYS || error == ENOTSUP;
  return unknown ? CreateByLink(object, hook) : error;
}

int SyncNew(int fd, const FilePutManner& manner, struct stat* file) {
  const int error = manner.durable ? Step(manner.hook, FilePutStep::kSyncFile, [&] { return fsync(fd); }) : 0;
  if (error != 0) return error;
  return fstat(fd, file) == 0 ? 0 : errno;
}

// What a network file system could not write is told here at the latest.
int Close(Fd* fd) {
  return close(fd->Release()) == 0 || errno == EINTR ? 0 : errno;
}

int Place(const NewObject& object, PutMode mode, const FilePutManner& manner) {
  const int error = mode == PutMode::kCreate ? Create(object, manner.hook) : Replace(object, manner.hook);
  if (error != 0 || !manner.durable) return error;
  if (const int failed = Before(manner.hook, FilePutStep::kSyncFolder); failed != 0) return failed;
  return SyncFolderBelow(object.root, FolderOfKey(object.key));
}

}  // namespace

int OpenTemporary(int root, const std::string& folder, mode_t mode, std::string* path, Fd* fd) {
  KernelRandom random;
  do {
    char name[40];
    snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(random.Next()));
    *path = StrCat(folder, kTemporaryBegin, name);
    *fd = OpenRetrying(root, *path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  } while (!*fd && errno == EEXIST);
  return *fd ? 0 : errno;
}

int MakeFoldersBelow(int root, const std::string& folder, const FilePutManner& manner) {
  for (size_t slash = folder.find('/'); slash != std::string::npos; slash = folder.find('/', slash + 1)) {
    if (const int error = Before(manner.hook, FilePutStep::kMakeFolder); error != 0) return error;
    const std::string made = folder.substr(0, slash);
    if (mkdirat(root, made.c_str(), manner.private_files ? 0700 : 0777) != 0 && errno != EEXIST) return errno;
    if (!manner.durable) continue;
    if (const int error = Before(manner.hook, FilePutStep::kSyncNewFolder); error != 0) return error;
    if (const int error = SyncFolderBelow(root, FolderOfKey(made)); error != 0) return error;
  }
  return 0;
}

int OpenObjectFile(int root, const std::string& key, const FilePutManner& manner, std::string* temporary,
                   Fd* fd) {
  if (const int error = Before(manner.hook, FilePutStep::kOpenTemporary); error != 0) return error;
  const std::string folder = FolderOfKey(key);
  const mode_t mode = manner.private_files ? 0600 : 0666;
  const int error = OpenTemporary(root, folder, mode, temporary, fd);
  if (error != ENOENT || folder.empty()) return error;
  if (const int failed = MakeFoldersBelow(root, folder, manner); failed != 0) return failed;
  return OpenTemporary(root, folder, mode, temporary, fd);
}

int PlaceObjectFile(int root, const std::string& key, const std::string& temporary, int fd, PutMode mode,
                    const FilePutManner& manner) {
  struct stat file {};
  int error = SyncNew(fd, manner, &file);
  if (error == 0) error = Place({root, temporary, key, file}, mode, manner);
  if (error != 0) unlinkat(root, temporary.c_str(), 0);
  return error;
}

int PutObjectFile(int root, const std::string& key, std::span<const std::string_view> pieces, PutMode mode,
                  const FilePutManner& manner) {
  struct stat there {};
  if (mode == PutMode::kCreate && fstatat(root, key.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  std::string temporary;
  Fd fd;
  if (const int error = OpenObjectFile(root, key, manner, &temporary, &fd); error != 0) return error;
  int error = Before(manner.hook, FilePutStep::kWrite);
  struct stat file {};
  if (error == 0) error = WriteAll(fd.Get(), pieces);
  if (error == 0) error = SyncNew(fd.Get(), manner, &file);
  // Nobody has it open when its first name goes: on NFS 4.0 it would get a third one, and all on this host
  // who read it by its second would wait until the server gives up a host that is gone, 90 s.
  if (const int closed = Close(&fd); error == 0) error = closed;
  if (error == 0) error = Place({root, temporary, key, file}, mode, manner);
  if (error == 0) return 0;
  unlinkat(root, temporary.c_str(), 0);
  return error;
}

}  // namespace overcap
