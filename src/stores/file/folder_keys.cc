// SPDX-License-Identifier: Apache-2.0
#include "stores/file/folder_keys.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>

#include "base/text.h"
#include "stores/file/object_file.h"
#include "sys/fd.h"
#include "sys/fresh_open.h"
#include "sys/open_without_links.h"

namespace overcap {
namespace {

constexpr unsigned char kOdd = 255;  // what a list by KeyRule::kAny leaves out and tells of

// Removed by somebody meanwhile. ESTALE is not that: a list that ends early would look like one of fewer
// keys.
bool Gone(int error) {
  return error == ENOENT || error == ENOTDIR;
}

// Calls `visit(name, d_type)` for all names but "." and "..".
template <typename Visit>
int ReadNames(int root, const std::string& folder, KeyRule rule, const Visit& visit) {
  // Opened anew each time: over NFS this is what makes sure that the names are those of now.
  Fd fd = OpenKey(root, folder, O_RDONLY | O_DIRECTORY, rule);
  if (!fd) return errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> names(fdopendir(fd.Get()), closedir);
  if (!names) return errno;
  fd.Release();
  for (errno = 0; const dirent* entry = readdir(names.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") visit(name, entry->d_type);
  }
  return errno;
}

// DT_REG, DT_DIR, or DT_UNKNOWN for what does not count. Symbolic links count directly below the store's
// folder only, where somebody may have put `packs` on another disk: deeper they could lead in circles.
// Where people's own files are listed, links to files count everywhere, links to folders nowhere.
unsigned char TypeOf(int root, const std::string& path, unsigned char hint, bool follow,
                     KeyRule rule = KeyRule::kPlain) {
  if (hint == DT_REG || hint == DT_DIR) return hint;
  const bool any = rule == KeyRule::kAny;
  const unsigned char neither = any ? kOdd : static_cast<unsigned char>(DT_UNKNOWN);
  if (hint != DT_UNKNOWN && !(hint == DT_LNK && (follow || any))) return neither;
  struct stat info {};
  if (fstatat(root, path.c_str(), &info, follow && !any ? 0 : AT_SYMLINK_NOFOLLOW) != 0) return neither;
  if (S_ISDIR(info.st_mode)) return DT_DIR;
  if (any && S_ISLNK(info.st_mode) && fstatat(root, path.c_str(), &info, 0) != 0) return kOdd;
  return S_ISREG(info.st_mode) ? static_cast<unsigned char>(DT_REG) : neither;
}

class KeyLister {
 public:
  KeyLister(int root, const std::string& prefix, const std::string& after, size_t limit, KeyRule rule,
            StorePage* page)
      : root_(root), prefix_(prefix), after_(after), limit_(limit), rule_(rule), page_(page) {}

  int List(const std::string& folder) {
    const int error = Visit(folder);
    if (page_->next.empty()) page_->left_out += left_out_;
    return error;
  }

  const std::string& failed() const { return failed_; }

 private:
  // `folder` is "" or ends with '/'.
  int Visit(const std::string& folder) {
    std::vector<std::string> paths;
    const int error = ReadNames(root_, folder, rule_, [&](std::string_view name, unsigned char hint) {
      if (IsKeyPart(name, rule_)) Collect(folder + std::string(name), hint, folder.empty(), &paths);
    });
    if (error != 0) return Failed(error, folder);
    // A folder stands where its keys do: behind "a-b", before "a0".
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    for (const std::string& path : paths) {
      if (path.back() == '\0') {
        ++left_out_;
        continue;
      }
      if (const int failed = path.back() == '/' ? Visit(path) : Add(path); failed != 0) return failed;
      if (!page_->next.empty()) break;
    }
    return 0;
  }

  void Collect(std::string path, unsigned char hint, bool follow, std::vector<std::string>* paths) {
    if (!path.starts_with(prefix_) && !prefix_.starts_with(path)) return;
    const unsigned char type = TypeOf(root_, path, hint, follow, rule_);
    if (type == DT_DIR) path += '/';
    if (type == kOdd && path > after_ && path.starts_with(prefix_)) return paths->push_back(path + '\0');
    const bool wanted = path.starts_with(prefix_) || (type == DT_DIR && prefix_.starts_with(path));
    const bool before = type == DT_DIR ? path < after_ && !after_.starts_with(path) : path <= after_;
    const size_t longest = rule_ == KeyRule::kAny ? kLongestAnyKey : kLongestKey;
    if ((type == DT_DIR || type == DT_REG) && wanted && !before && path.size() <= longest)
      paths->push_back(std::move(path));
  }

  int Add(const std::string& path) {
    if (page_->objects.size() == limit_) {
      page_->next = page_->objects.back().key;
      return 0;
    }
    struct stat info {};
    if (fstatat(root_, path.c_str(), &info, 0) != 0) return Failed(errno, path);
    page_->left_out += left_out_;
    left_out_ = 0;
    page_->objects.push_back(FileInfo(path, info));
    return 0;
  }

  int Failed(int error, const std::string& path) {
    if (Gone(error)) return 0;
    failed_ = path;
    return error;
  }

  const int root_;
  const std::string& prefix_;
  const std::string& after_;
  const size_t limit_;
  const KeyRule rule_;
  StorePage* const page_;
  int64_t left_out_ = 0;  // since the last key
  std::string failed_;
};

using TemporaryVisit = std::function<void(const std::string& path, int64_t modified_us)>;

int VisitTemporariesBelow(int root, const std::string& folder, KeyRule rule, const TemporaryVisit& visit,
                          std::string* failed) {
  std::vector<std::string> folders;
  const int error = ReadNames(root, folder, rule, [&](std::string_view name, unsigned char hint) {
    const std::string path = folder + std::string(name);
    struct stat info {};
    if ((name.starts_with(kTemporaryBegin) || name.starts_with(kPartialBegin)) &&
        fstatat(root, path.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
      visit(path, ModifiedUs(info));
    else if (IsKeyPart(name, rule) && TypeOf(root, path, hint, folder.empty()) == DT_DIR)
      folders.push_back(path + "/");
  });
  if (error != 0 && !Gone(error)) {
    *failed = folder;
    return error;
  }
  for (const std::string& below : folders) {
    if (const int deeper = VisitTemporariesBelow(root, below, rule, visit, failed); deeper != 0)
      return deeper;
  }
  return 0;
}

Fd OpenPlainKey(int root, const std::string& path, int flags) {
  const size_t slash = path.find('/');
  if (slash == std::string::npos || slash + 1 == path.size())
    return OpenRetrying(root, path.empty() ? "." : path, flags);
  Fd fd = OpenWithoutLinks(root, path, flags);
  if (fd || (errno != ELOOP && errno != ENOTDIR)) return fd;
  const Fd first = OpenRetrying(root, path.substr(0, slash), O_PATH | O_DIRECTORY);
  fd = first ? OpenWithoutLinks(first.Get(), path.substr(slash + 1), flags) : Fd();
  if (!fd && errno == ELOOP) errno = ENOTDIR;
  return fd;
}

}  // namespace

Fd OpenKey(int root, const std::string& path, int flags, KeyRule rule) {
  if (rule == KeyRule::kAny) return OpenFresh(root, path.empty() ? "." : path, flags);
  Fd fd = OpenPlainKey(root, path, flags);
  if (fd || (errno != ENOENT && errno != ESTALE)) return fd;
  const int error = errno;
  if (AskForFolder(root, path)) return OpenPlainKey(root, path, flags);
  errno = error;
  return fd;
}

int64_t ModifiedUs(const struct stat& info) {
  return static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000 + info.st_mtim.tv_nsec / 1000;
}

StoredObjectInfo FileInfo(const std::string& key, const struct stat& info) {
  StoredObjectInfo object{key, info.st_size, ModifiedUs(info)};
  object.version =
      StrCat(info.st_ino, "-", info.st_size, "-", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
  object.changed_us = static_cast<int64_t>(info.st_ctim.tv_sec) * 1'000'000 + info.st_ctim.tv_nsec / 1000;
  return object;
}

int ListFolderKeys(int root, const std::string& prefix, const std::string& after, size_t limit, KeyRule rule,
                   StorePage* page, std::string* failed) {
  KeyLister lister(root, prefix, after, limit, rule, page);
  const int error = lister.List(prefix.substr(0, prefix.rfind('/') + 1));
  *failed = lister.failed();
  return error;
}

int VisitTemporaries(int root, KeyRule rule, const TemporaryVisit& visit, std::string* failed) {
  return VisitTemporariesBelow(root, "", rule, visit, failed);
}

}  // namespace overcap
