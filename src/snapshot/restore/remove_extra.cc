// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/remove_extra.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/restore/folder_names.h"

namespace overcap {

bool ExtraRemover::Remove(int folder_fd, uint32_t folder, const std::string& name) {
  const std::string path = folder == 0 ? name : StrCat(tree_.Path(folder), "/", name);
  return RemoveEntry(folder_fd, name, path, 0);
}

bool ExtraRemover::RemoveEntry(int folder_fd, const std::string& name, const std::string& path, int depth) {
  if (ledger_.Over()) return false;
  if (guard_.on()) return RemoveLooked(folder_fd, name, path, depth);
  if (unlinkat(folder_fd, name.c_str(), 0) == 0) {
    ++removed_;
    return true;
  }
  if (errno == ENOENT) return true;
  // Linux says EISDIR for a folder, others EPERM.
  if (errno != EISDIR && errno != EPERM) return Failed(path, errno);
  return RemoveFolder(folder_fd, name, path, depth);
}

// Only what is still what the caller looked at. A folder that changed since may have got what it has by a
// move, which leaves no trace on the files in it: all of it stays.
bool ExtraRemover::RemoveLooked(int folder_fd, const std::string& name, const std::string& path, int depth) {
  if (guard_.Keeps(path)) return false;
  struct statx now;
  int error = LookAtName(folder_fd, name.c_str(), &now);
  if (error == ENOENT) return true;
  if (error == 0 && guard_.IsNew(now)) {
    ledger_.Kept(path);
    return false;
  }
  if (error == 0 && S_ISDIR(now.stx_mode)) return RemoveFolder(folder_fd, name, path, depth);
  if (error == 0) error = guard_.Remove(staging_, folder_fd, name.c_str(), now);
  if (error == kChangedMeanwhile) {
    ledger_.Kept(path);
  } else if (error != 0) {
    Failed(path, error);
  } else {
    ++removed_;
  }
  return error == 0;
}

bool ExtraRemover::RemoveFolder(int folder_fd, const std::string& name, const std::string& path, int depth) {
  if (unlinkat(folder_fd, name.c_str(), AT_REMOVEDIR) == 0) {
    ++removed_;
    return true;
  }
  if (errno != ENOTEMPTY && errno != EEXIST && errno != EACCES) return Failed(path, errno);
  if (depth > kDeepest) return Failed(path, ELOOP);
  const Fd fd = OpenFolderToRead(folder_fd, name.c_str(), true);
  struct stat status;
  if (!fd || fstat(fd.Get(), &status) != 0) return Failed(path, errno);
  if ((status.st_mode & 0300) != 0300) (void)fchmod(fd.Get(), (status.st_mode & 07777) | 0700);
  std::vector<ListedName> names;
  if (!ListNames(fd.Get(), true, &names)) return Failed(path, errno);
  bool empty = true;
  for (const ListedName& listed : names) {
    const std::string below = StrCat(path, "/", listed.name);
    const bool stays = exclude_.Match(below, listed.is_folder) == IgnoreVerdict::kIgnored;
    if (stays || !RemoveEntry(fd.Get(), listed.name, below, depth + 1)) empty = false;
  }
  if (!empty) return false;
  if (unlinkat(folder_fd, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    if (!guard_.on() || (errno != ENOTEMPTY && errno != EEXIST)) return Failed(path, errno);
    ledger_.Kept(path);  // something came into it
    return false;
  }
  ++removed_;
  return true;
}

bool ExtraRemover::Failed(const std::string& path, int error) {
  ledger_.Problem(path, StrCat("cannot be removed: ", ErrnoText(error)));
  return false;
}

}  // namespace overcap
