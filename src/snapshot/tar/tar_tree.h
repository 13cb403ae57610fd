// SPDX-License-Identifier: Apache-2.0
// Entries of a tar, in whatever order they come, as the ordered list that a tree wants. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/tar/tar_item.h"

namespace overcap {

// A name as it stands in a tar -> a path of a tree: without "./", doubled and trailing slashes. kUsage,
// naming it, for an absolute one and one with "..". `strip` components at its begin are dropped; `gone` when
// nothing is left of it (or for a folder, nothing but the folder itself: "").
struct CleanedPath {
  std::string path;
  bool gone = false;
};
Result<CleanedPath> CleanTarPath(std::string_view name, int strip, bool folder);

class TarTree {
 public:
  // For entries that are missing: folders above others, the folder itself.
  struct Defaults {
    uint32_t uid = 0, gid = 0;
    int64_t mtime_ns = 0;
  };
  explicit TarTree(Defaults defaults) : defaults_(defaults) {}

  // An entry whose path (and target, of a hard link) is clean; content and size set later through file(). The
  // number of it.
  size_t Add(SnapshotEntry entry);
  SnapshotEntry& entry(size_t number) { return entries_[number]; }
  size_t size() const { return entries_.size(); }

  // In the order of a tree, with all that was missing. Of several entries with one path the last counts, as
  // if the tar had been unpacked; hard links mean what stood there when they came. kCorrupt, one line without
  // the name of the tar, when it cannot be a folder. Once: the entries are gone then.
  Result<void> Visit(const std::function<Result<void>(const SnapshotEntry&)>& visit);
  // Before Visit: the numbers of the files whose content is needed.
  Result<void> Resolve();
  bool Needed(size_t number) const { return needed_[number]; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t Root(uint32_t number) const;
  Result<uint32_t> LinkTarget(uint32_t number) const;
  SnapshotEntry Made(std::string path) const;

  Defaults defaults_;
  std::vector<SnapshotEntry> entries_;
  std::vector<uint32_t> order_;   // numbers by path and age
  std::vector<uint32_t> kept_;    // those that count, by path
  std::vector<uint32_t> target_;  // of hard links: the number they mean
  std::vector<bool> needed_;
};

}  // namespace overcap
