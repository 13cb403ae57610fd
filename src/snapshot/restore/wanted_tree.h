// SPDX-License-Identifier: Apache-2.0
// The entries of a tree that a restore or a comparison is about, all in memory and small.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/format/content_map.h"
#include "snapshot/format/entry.h"
#include "snapshot/format/tree_pages.h"

namespace overcap {

constexpr uint32_t kNoEntry = UINT32_MAX;

struct WantedEntry {
  uint64_t name = 0;  // in WantedTree's bytes
  int64_t mtime_ns = 0;
  int64_t size = 0;
  uint32_t parent = 0;  // number of its folder; the root's is its own
  // Folders: number of the entry after all that is in it. Hard links: number of the file that it is.
  // Symbolic links: number of the target.
  uint32_t link = 0;
  uint32_t xattrs = kNoEntry;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint16_t mode = 0;
  SnapshotEntryType type = SnapshotEntryType::kFile;
  FileContent::Kind content = FileContent::Kind::kEmpty;
  bool wanted = true;      // false: only a folder on the way to one that is
  bool has_links = false;  // files: hard links to it are wanted too
  bool unsteady = false;
  Digest id;  // of the content

  bool IsFolder() const { return type == SnapshotEntryType::kFolder; }
  bool IsFile() const { return type == SnapshotEntryType::kFile; }
  bool IsHardLink() const { return type == SnapshotEntryType::kHardLink; }
  bool IsSymlink() const { return type == SnapshotEntryType::kSymlink; }
  FileContent Content() const { return {content, id}; }
};

// In the order of the tree, the root first, each entry after its folder. Entries are named by number.
class WantedTree {
 public:
  struct Selection {
    std::vector<std::string> paths;  // as a user types them; empty: all
    std::string keep_name;           // an entry of the root that is never wanted
    bool skip_damage = false;        // what pages of the tree that cannot be read hold is left out: gaps()
  };
  // Checks every path again: whatever the tree says, an entry has a plain name and a folder. kNotFound when
  // one of the paths is not in the tree, kUsage when it cannot be in one.
  static Result<WantedTree> Load(const Digest& tree, const Selection& selection, const GetMeta& get);

  uint32_t size() const { return static_cast<uint32_t>(entries_.size()); }
  const WantedEntry& operator[](uint32_t number) const { return entries_[number]; }
  const std::vector<WantedEntry>& entries() const { return entries_; }
  bool partial() const { return partial_ || !gaps_.empty(); }
  const std::vector<TreeGap>& gaps() const { return gaps_; }
  bool has_hard_links() const { return has_hard_links_; }
  bool left_out_keep_name() const { return left_out_keep_name_; }

  const char* Name(uint32_t number) const { return bytes_.data() + entries_[number].name; }
  std::string Path(uint32_t number) const;  // "" for the root
  const std::string& Target(uint32_t number) const { return targets_[entries_[number].link]; }
  const std::vector<ExtendedAttribute>& Xattrs(uint32_t number) const;
  // The entries of a folder: First(f), then Next(e) until End(f).
  uint32_t First(uint32_t folder) const { return folder + 1; }
  uint32_t Next(uint32_t number) const {
    return entries_[number].IsFolder() ? entries_[number].link : number + 1;
  }
  uint32_t End(uint32_t folder) const { return entries_[folder].link; }

 private:
  friend class WantedTreeLoader;

  std::vector<WantedEntry> entries_;
  std::string bytes_;  // names, each with a NUL behind it
  std::vector<std::string> targets_;
  std::vector<std::vector<ExtendedAttribute>> xattrs_;
  std::vector<TreeGap> gaps_;
  bool partial_ = false;
  bool has_hard_links_ = false;
  bool left_out_keep_name_ = false;
};

}  // namespace overcap
