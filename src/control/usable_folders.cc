// SPDX-License-Identifier: Apache-2.0
#include "control/usable_folders.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr size_t kNamed = 4;

// /proc/self/mounts writes blanks and such as \040.
std::string Unescape(std::string_view text) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size() && octal(text[at + 1]) && octal(text[at + 2]) &&
        octal(text[at + 3])) {
      out += static_cast<char>((text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 + (text[at + 3] - '0'));
      at += 3;
    } else {
      out += text[at];
    }
  }
  return out;
}

bool IsLocalType(std::string_view type) {
  constexpr std::array<std::string_view, 9> kLocal = {"ext2", "ext3", "ext4",     "xfs",    "btrfs",
                                                      "zfs",  "f2fs", "bcachefs", "overlay"};
  return std::ranges::find(kLocal, type) != kLocal.end();
}

void AddIfUsable(const std::string& path, std::vector<UsableFolder>* folders) {
  struct stat info {};
  struct statvfs space {};
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
  if (access(path.c_str(), W_OK | X_OK) != 0 || statvfs(path.c_str(), &space) != 0) return;
  folders->push_back({path, static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize),
                      static_cast<uint64_t>(info.st_dev)});
}

std::string FoldersHint(const std::string& user, const std::string& temp_folder) {
  std::vector<std::string> names;
  for (const UsableFolder& folder : FindUsableFolders(user, temp_folder))
    names.push_back(StrCat(folder.path, " (", FormatBytes(folder.free_bytes), " free)"));
  if (names.empty()) return "--at DIR names another folder; none was found that you can write";
  return StrCat("--at DIR names another folder; these would do: ", Join(names, ", "));
}

}  // namespace

std::vector<std::string> LocalMounts(std::string_view mounts) {
  std::vector<std::string> folders;
  for (const std::string& line : Split(mounts, '\n')) {
    const std::vector<std::string> words = Split(line, ' ');
    if (words.size() < 4 || !IsLocalType(words[2])) continue;
    const std::vector<std::string> options = Split(words[3], ',');
    if (std::ranges::find(options, "ro") != options.end()) continue;
    const std::string folder = Unescape(words[1]);
    if (folder.starts_with("/boot") || folder.starts_with("/etc/")) continue;
    folders.push_back(folder);
  }
  return folders;
}

std::vector<UsableFolder> BestFolders(std::vector<UsableFolder> candidates, size_t most) {
  std::ranges::stable_sort(candidates, [](const UsableFolder& a, const UsableFolder& b) {
    return a.free_bytes != b.free_bytes ? a.free_bytes > b.free_bytes : a.path.size() < b.path.size();
  });
  std::vector<UsableFolder> best;
  for (UsableFolder& folder : candidates) {
    const bool known =
        std::ranges::any_of(best, [&](const UsableFolder& other) { return other.device == folder.device; });
    if (!known && best.size() < most) best.push_back(std::move(folder));
  }
  return best;
}

std::vector<UsableFolder> FindUsableFolders(const std::string& user, const std::string& temp_folder) {
  std::vector<UsableFolder> folders;
  const auto mounts = PosixFiles().Read("/proc/self/mounts");
  for (const std::string& mount : LocalMounts(mounts ? *mounts : "")) {
    const std::string below = mount == "/" ? "" : mount;
    if (mount != "/") AddIfUsable(mount, &folders);
    for (const std::string_view name : {"scratch", "data", "local", "work"})
      AddIfUsable(StrCat(below, "/", name), &folders);
    AddIfUsable(StrCat(below, "/", user), &folders);
    AddIfUsable(StrCat(below, "/tmp"), &folders);
  }
  for (const std::string& path :
       {temp_folder, std::string("/var/tmp"), std::string("/tmp"), std::string("/dev/shm")}) {
    if (!path.empty()) AddIfUsable(path, &folders);
  }
  return BestFolders(std::move(folders), kNamed);
}

Result<void> MakeWorkFolder(const std::string& folder, const std::string& user,
                            const std::string& temp_folder, std::string* made) {
  made->clear();
  for (size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    const std::string part = folder.substr(0, end);
    struct stat info {};
    const bool there = stat(part.c_str(), &info) == 0;
    if (there && !S_ISDIR(info.st_mode))
      return Fail(ErrorCode::kUsage, StrCat("'", part, "' is no folder"), "--at DIR names another one");
    const bool first = part.find('/', 1) == std::string::npos;
    if (!there && first && part != folder) {
      return Fail(ErrorCode::kNotFound, StrCat("there is no '", part, "' on this machine"),
                  FoldersHint(user, temp_folder));
    }
    if (!there && mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      const Error error = ErrnoError(errno, StrCat("cannot make the folder '", part, "'"));
      if (!made->empty()) (void)PosixFiles().RemoveTree(*made);
      return Fail(error.code, error.message, FoldersHint(user, temp_folder));
    }
    if (!there && made->empty()) *made = part;
    if (end == std::string::npos) return {};
  }
}

}  // namespace overcap
