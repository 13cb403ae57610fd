// SPDX-License-Identifier: Apache-2.0
#include "snapshot/testing/compare_trees.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <optional>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utility>

#include "base/text.h"
#include "sys/fd.h"

namespace overcap {
namespace {

using Attributes = std::map<std::string, std::string>;
using FileKey = std::pair<dev_t, ino_t>;

constexpr int64_t kSlack = 256 << 10;  // a file system may keep that much more for the same bytes

std::set<std::string> NamesOf(int fd) {
  std::set<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(
      fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), closedir);
  if (!folder) return names;
  while (const dirent* entry = readdir(folder.get())) names.insert(entry->d_name);
  names.erase(".");
  names.erase("..");
  return names;
}

// Of the entry itself, also when it is a link.
Attributes AttributesOf(int folder_fd, const std::string& name) {
  const std::string path = StrCat("/proc/self/fd/", folder_fd, "/", name);
  if (llistxattr(path.c_str(), nullptr, 0) == 0) return {};
  std::string list(65536, '\0');
  const ssize_t size = llistxattr(path.c_str(), list.data(), list.size());
  Attributes all;
  for (ssize_t at = 0; at < size; at += static_cast<ssize_t>(strlen(list.data() + at)) + 1) {
    const char* key = list.data() + at;
    std::string value(65536, '\0');
    const ssize_t length = lgetxattr(path.c_str(), key, value.data(), value.size());
    value.resize(length < 0 ? 0 : static_cast<size_t>(length));
    all[key] = length < 0 ? StrCat("cannot be read: ", strerror(errno)) : value;
  }
  return all;
}

int64_t NextData(int fd, int64_t from, int64_t size) {
  const off_t at = lseek(fd, from, SEEK_DATA);
  return at < 0 ? size : static_cast<int64_t>(at);
}

// Where the contents differ first; nullopt when they do not. Both have this size.
std::optional<int64_t> FirstDifference(int left, int right, int64_t size) {
  const size_t piece = static_cast<size_t>(std::min<int64_t>(size, 1 << 20));
  std::string a(piece, '\0'), b(piece, '\0');
  for (int64_t at = 0; at < size;) {
    at = std::min(NextData(left, at, size), NextData(right, at, size));
    if (at >= size) break;
    const ssize_t got = pread(left, a.data(), a.size(), at);
    if (got <= 0 || pread(right, b.data(), static_cast<size_t>(got), at) != got) return at;
    if (memcmp(a.data(), b.data(), static_cast<size_t>(got)) != 0) return at;
    at += got;
  }
  return std::nullopt;
}

std::string LinkTarget(int folder_fd, const std::string& name) {
  std::string target(8192, '\0');
  const ssize_t size = readlinkat(folder_fd, name.c_str(), target.data(), target.size());
  return size < 0 ? std::string() : target.substr(0, static_cast<size_t>(size));
}

std::string TimeText(const struct timespec& time) {
  return StrCat(time.tv_sec, ".", std::to_string(1'000'000'000 + time.tv_nsec).substr(1));
}

class Comparer {
 public:
  explicit Comparer(const TreeComparison& how) : how_(how) {}

  std::vector<std::string> Run(const std::string& left, const std::string& right) {
    Folder(AT_FDCWD, left, AT_FDCWD, right, "");
    return std::move(lines_);
  }

 private:
  void Note(const std::string& path, const std::string& what) {
    if (lines_.size() < how_.most) lines_.push_back(StrCat(path.empty() ? "." : path, ": ", what));
  }

  static Fd OpenFolder(int parent, const std::string& name, bool top) {
    return Fd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | (top ? 0 : O_NOFOLLOW)));
  }

  void Folder(int left_parent, const std::string& left_name, int right_parent, const std::string& right_name,
              const std::string& path) {
    const Fd left = OpenFolder(left_parent, left_name, path.empty());
    const Fd right = OpenFolder(right_parent, right_name, path.empty());
    if (!left || !right) return Note(path, StrCat("cannot be opened: ", strerror(errno)));
    if (path.empty()) Metadata(left.Get(), ".", right.Get(), ".", path);
    std::set<std::string> left_names = NamesOf(left.Get()), right_names = NamesOf(right.Get());
    if (path.empty()) {
      for (const std::string& name : how_.skip) left_names.erase(name), right_names.erase(name);
    }
    for (const std::string& name : left_names) {
      const std::string full = path.empty() ? name : StrCat(path, "/", name);
      if (right_names.erase(name) == 0) {
        Note(full, "is missing on the right");
      } else {
        Entry(left.Get(), right.Get(), name, full);
      }
    }
    for (const std::string& name : right_names) {
      Note(path.empty() ? name : StrCat(path, "/", name), "is only on the right");
    }
  }

  void Entry(int left, int right, const std::string& name, const std::string& path) {
    if (!Metadata(left, name, right, name, path)) return;
    struct stat a, b;
    if (fstatat(left, name.c_str(), &a, AT_SYMLINK_NOFOLLOW) != 0 ||
        fstatat(right, name.c_str(), &b, AT_SYMLINK_NOFOLLOW) != 0) {
      return Note(path, "vanished");
    }
    if (S_ISDIR(a.st_mode)) return Folder(left, name, right, name, path);
    if (S_ISLNK(a.st_mode) && LinkTarget(left, name) != LinkTarget(right, name)) {
      Note(path, StrCat("points to ", LinkTarget(left, name), " and to ", LinkTarget(right, name)));
    }
    SameFile(a, b, path);
    if (S_ISREG(a.st_mode)) Content(left, right, name, path, a, b);
  }

  // Modes, owners, times and extended attributes. False when the entries are of different types.
  bool Metadata(int left, const std::string& left_name, int right, const std::string& right_name,
                const std::string& path) {
    struct stat a, b;
    if (fstatat(left, left_name.c_str(), &a, AT_SYMLINK_NOFOLLOW) != 0 ||
        fstatat(right, right_name.c_str(), &b, AT_SYMLINK_NOFOLLOW) != 0) {
      Note(path, "vanished");
      return false;
    }
    if ((a.st_mode & S_IFMT) != (b.st_mode & S_IFMT)) {
      Note(path, "is of another type");
      return false;
    }
    if (a.st_mode != b.st_mode) Note(path, StrCat("has mode ", Octal(a.st_mode), " and ", Octal(b.st_mode)));
    if (how_.owners && (a.st_uid != b.st_uid || a.st_gid != b.st_gid)) {
      Note(path, StrCat("is of ", a.st_uid, ":", a.st_gid, " and of ", b.st_uid, ":", b.st_gid));
    }
    if (how_.times && (a.st_mtim.tv_sec != b.st_mtim.tv_sec || a.st_mtim.tv_nsec != b.st_mtim.tv_nsec)) {
      Note(path, StrCat("changed at ", TimeText(a.st_mtim), " and at ", TimeText(b.st_mtim)));
    }
    if (AttributesOf(left, left_name) != AttributesOf(right, right_name)) {
      Note(path, "has other extended attributes");
    }
    return true;
  }

  static std::string Octal(mode_t mode) {
    std::string text;
    for (int shift = 9; shift >= 0; shift -= 3) text += static_cast<char>('0' + ((mode >> shift) & 7));
    return text;
  }

  // Names that are one file on the left are one on the right, and the other way round.
  void SameFile(const struct stat& a, const struct stat& b, const std::string& path) {
    const auto left = left_files_.try_emplace({a.st_dev, a.st_ino}, path).first;
    const auto right = right_files_.try_emplace({b.st_dev, b.st_ino}, path).first;
    if (left->second != right->second) {
      Note(path,
           StrCat("is the same file as ", left->second, " on the left, as ", right->second, " on the right"));
    }
  }

  void Content(int left, int right, const std::string& name, const std::string& path, const struct stat& a,
               const struct stat& b) {
    if (a.st_size != b.st_size) return Note(path, StrCat("has ", a.st_size, " and ", b.st_size, " bytes"));
    if (b.st_blocks * 512 > std::max<int64_t>(a.st_blocks * 512 + kSlack, a.st_blocks * 512 / 8 * 9) &&
        a.st_blocks * 512 < a.st_size) {
      Note(path, StrCat("has no holes on the right: ", a.st_blocks, " and ", b.st_blocks, " blocks"));
    }
    const Fd one(openat(left, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    const Fd two(openat(right, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!one || !two) return Note(path, StrCat("cannot be opened: ", strerror(errno)));
    if (const auto at = FirstDifference(one.Get(), two.Get(), a.st_size)) {
      Note(path, StrCat("has another content at byte ", *at));
    }
  }

  const TreeComparison& how_;
  std::map<FileKey, std::string> left_files_, right_files_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> CompareTrees(const std::string& left, const std::string& right,
                                      const TreeComparison& how) {
  return Comparer(how).Run(left, right);
}

}  // namespace overcap
