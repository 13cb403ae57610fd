// SPDX-License-Identifier: Apache-2.0
#include "stores/file/file_errors.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

ErrorCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTSUP:
      return ErrorCode::kDenied;
    case EEXIST:
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case kNoFile:
      return ErrorCode::kConflict;
    case ENAMETOOLONG:
    case ELOOP:
      return ErrorCode::kUsage;
    default:
      return ErrorCode::kUnavailable;  // full, unreachable, too many open files, a disk that fails
  }
}

std::string HintOf(int error_number, const std::string& location) {
  const std::string shown = ShellQuote(location);
  switch (error_number) {
    case EACCES:
    case EPERM:
      return StrCat("see who owns it with 'ls -ld ", shown, "' and ask for access, or use another store");
    case EROFS:
      return StrCat("the file system of ", shown,
                    " is mounted read-only: use another store, or ask who runs it");
    case ENOTSUP:
      return StrCat("the file system of ", shown,
                    " has neither links nor safe renames: use a store on another one");
    case ENOSPC:
    case EDQUOT:
      return StrCat("free some space there (see 'df -h ", shown, "' and 'quota'), then try again");
    case EFBIG:
      return "files may be only so large here: see 'ulimit -f'";
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return "close other programs, then try again";
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
      return StrCat("a file and a folder cannot have the same name in ", shown, ": use another folder");
    case kNoFile:
      return "choose another name, or remove it first";
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
    case ENOTCONN:
    case EHOSTDOWN:
    case EHOSTUNREACH:
      return StrCat("see whether the disk or file server of ", shown, " is well, then try again");
    default:
      return {};
  }
}

// Whose owner decides about it: what is read itself, of what is made or changed the nearest folder that is
// there.
std::string OwnedPath(std::string_view what, const std::string& key, const std::string& location) {
  std::string path = key.empty() ? location : StrCat(location, "/", key);
  const bool in_folder =
      what != "read" && what != "list" && what != "open" && !(key.empty() && what != "make");
  for (bool up = in_folder; path.rfind('/') != 0; up = access(path.c_str(), F_OK) != 0) {
    if (!up) break;
    path.resize(path.rfind('/'));
  }
  return path;
}

}  // namespace

Error FileStoreError(int error_number, std::string_view what, const std::string& key,
                     const std::string& location) {
  const std::string object = key.empty() ? "" : StrCat(Quoted(key, 200), " in ");
  return Error{
      CodeOf(error_number),
      StrCat("cannot ", what, " ", object, "store ", Quoted(location, 500), ": ",
             error_number == kNoFile ? "it is a device, a pipe or a socket" : strerror(error_number)),
      HintOf(error_number, OwnedPath(what, key, location))};
}

}  // namespace overcap
