// SPDX-License-Identifier: Apache-2.0
#include "snapshot/spare.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/text.h"
#include "snapshot/file_io.h"
#include "snapshot/folder_list.h"
#include "sys/remove_tree.h"

namespace overcap {
namespace {

std::string SpareName(const Digest& tree, int n) {
  return StrCat(SpareFolder(), "/", tree.Hex(), "-", n);
}

// Out of reach of TakeSpare first, in one step; then removed at leisure.
void Discard(const SnapshotStore& store, const std::string& path) {
  const std::string trash = TemporaryName("trash");
  if (RenameNew(store.LocalFd(), path, store.LocalFd(), trash)) {
    (void)RemoveTree(StrCat(store.LocalFolder(), "/", trash));
  }
}

std::string TreeOf(const std::string& spare_name) {
  return spare_name.substr(0, spare_name.find('-'));
}

std::string ReadBootId() {
  const std::string id(Trim(ReadFileOrNothing(AT_FDCWD, "/proc/sys/kernel/random/boot_id")));
  return id.find('/') == std::string::npos ? id : "";
}

}  // namespace

std::string SpareFolder() {
  static const std::string boot = ReadBootId();
  return boot.empty() ? "" : "spare/" + boot;
}

Result<bool> TakeSpare(const SnapshotStore& store, const Digest& tree, const std::string& target) {
  if (SpareFolder().empty()) return false;
  for (int n = 0; n < kMaxSpares; ++n) {
    if (RenameNew(store.LocalFd(), SpareName(tree, n), AT_FDCWD, target)) return true;
    if (errno == EEXIST) return Fail(ErrorCode::kConflict, StrCat("'", target, "' exists already"));
    if (errno != ENOENT)
      return false;  // another file system, or whatever else a copy will get over or report
  }
  return false;
}

int CountSpares(const SnapshotStore& store, const Digest& tree) {
  int count = 0;
  for (int n = 0; n < kMaxSpares; ++n) {
    count += faccessat(store.LocalFd(), SpareName(tree, n).c_str(), F_OK, 0) == 0 ? 1 : 0;
  }
  return count;
}

Result<void> AddSpare(const SnapshotStore& store, const Digest& tree, const std::string& copy) {
  if (mkdirat(store.LocalFd(), SpareFolder().c_str(), 0700) != 0 && errno != EEXIST) {
    return Fail(ErrnoError(errno, StrCat("cannot make '", store.LocalFolder(), "/", SpareFolder(), "'")));
  }
  for (int n = 0; n < kMaxSpares; ++n) {
    if (RenameNew(store.LocalFd(), copy, store.LocalFd(), SpareName(tree, n))) return {};
    if (errno != EEXIST) return Fail(ErrnoError(errno, StrCat("cannot keep a spare of '", tree.Hex(), "'")));
  }
  return RemoveTree(StrCat(store.LocalFolder(), "/", copy));
}

void TrimSpares(const SnapshotStore& store) {
  for (const ListedFile& boot : ListFolder(store.LocalFd(), "spare")) {
    const std::string folder = "spare/" + boot.name;
    if (folder != SpareFolder()) Discard(store, folder);
  }
  const std::vector<ListedFile> spares = ListFolder(store.LocalFd(), SpareFolder());
  std::map<std::string, int64_t> newest;
  for (const ListedFile& spare : spares) {
    int64_t& time = newest[TreeOf(spare.name)];
    time = std::max(time, spare.mtime_us);
  }
  std::vector<std::pair<int64_t, std::string>> trees;
  for (const auto& [tree, time] : newest) trees.emplace_back(time, tree);
  std::sort(trees.rbegin(), trees.rend());
  for (size_t i = kMaxSpareTrees; i < trees.size(); ++i) DropSpares(store, trees[i].second);
}

void DropSpares(const SnapshotStore& store, std::string_view tree_id) {
  for (const ListedFile& spare : ListFolder(store.LocalFd(), SpareFolder())) {
    if (TreeOf(spare.name) == tree_id) Discard(store, StrCat(SpareFolder(), "/", spare.name));
  }
}

}  // namespace overcap
