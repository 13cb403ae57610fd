// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/wanted_tree.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/path_order.h"

namespace overcap {
namespace {

bool IsBelow(std::string_view path, std::string_view folder) {
  return folder.empty() ||
         (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

bool PlainName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

// "./a//b/" -> "a/b". kUsage for what is in no tree.
Result<std::string> TreePath(std::string_view typed) {
  std::string path;
  for (const std::string& part : Split(typed, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..")
      return Fail(ErrorCode::kUsage, StrCat("the path ", Quoted(typed), " leaves the snapshot"));
    path += path.empty() ? part : "/" + part;
  }
  if (typed.starts_with('/')) {
    return Fail(ErrorCode::kUsage, StrCat("the path ", Quoted(typed), " is absolute"),
                "give it as it stands in the snapshot, relative to its folder");
  }
  return path;
}

// In the order of trees, none of them in another. Empty when the whole tree is meant.
Result<std::vector<std::string>> TreePaths(const std::vector<std::string>& typed) {
  std::vector<std::string> all;
  for (const std::string& text : typed) {
    OC_TRY(path, TreePath(text));
    if (path.empty()) return std::vector<std::string>();
    all.push_back(std::move(path));
  }
  std::sort(all.begin(), all.end(), PathBefore);
  std::vector<std::string> apart;
  for (std::string& path : all) {
    if (apart.empty() || (path != apart.back() && !IsBelow(path, apart.back())))
      apart.push_back(std::move(path));
  }
  return apart;
}

}  // namespace

class WantedTreeLoader {
 public:
  WantedTreeLoader(const Digest& tree, const WantedTree::Selection& selection, const GetMeta& get)
      : tree_(tree), keep_name_(selection.keep_name), get_(get), reader_(tree, get) {
    if (selection.skip_damage) reader_.SkipDamage([this](const TreeGap& gap) { out_.gaps_.push_back(gap); });
  }

  Result<WantedTree> Load(const std::vector<std::string>& typed) {
    OC_TRY(paths, TreePaths(typed));
    out_.partial_ = !paths.empty();
    OC_TRY_VOID(paths.empty() ? LoadAll() : LoadPaths(paths));
    CloseFolders(0);
    JoinHardLinks();
    return std::move(out_);
  }

 private:
  struct OpenFolder {
    uint32_t number;
    size_t path_size;
  };

  Result<void> LoadAll() {
    OC_TRY(totals, reader_.Totals());
    // What a page claims is not believed for more than it costs to be wrong.
    out_.entries_.reserve(static_cast<size_t>(std::clamp<int64_t>(totals.entries, 0, 1'000'000)));
    return AddUntil({}, true);
  }

  Result<void> LoadPaths(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      OC_TRY_VOID(AddAbove(path));
      OC_TRY_VOID(reader_.Seek(path));
      const uint32_t before = out_.size();
      OC_TRY_VOID(AddUntil(path, false));
      if (out_.size() == before && !LeftOut(path)) {
        return Fail(ErrorCode::kNotFound, StrCat("the snapshot has no ", Quoted(path, 200)),
                    "'overcap workspace ls SNAPSHOT' shows what it has");
      }
    }
    return {};
  }

  // The folders above a wanted path.
  Result<void> AddAbove(std::string_view path) {
    for (size_t end = 0; end != path.npos; end = path.find('/', end + 1)) {
      const std::string_view above = path.substr(0, end);
      if (out_.size() > 0 && (above == last_ || IsBelow(last_, above))) continue;
      OC_TRY(entry, FindEntry(tree_, above, get_));
      if (!entry || entry->type != SnapshotEntryType::kFolder) {
        return Fail(ErrorCode::kNotFound, StrCat("the snapshot has no ", Quoted(path, 200)));
      }
      OC_TRY_VOID(Add(*entry, false));
    }
    return {};
  }

  // Adds what comes next as long as it is `path` or below it.
  Result<void> AddUntil(std::string_view path, bool all) {
    while (true) {
      OC_TRY(entry, reader_.Next());
      if (entry == nullptr || (!all && entry->path != path && !IsBelow(entry->path, path))) return {};
      if (LeftOut(entry->path)) {
        out_.left_out_keep_name_ = true;
      } else {
        OC_TRY_VOID(Add(*entry, !MadeUp(*entry)));
      }
    }
  }

  // A folder that was in a gap: of use only for what is in it.
  bool MadeUp(const SnapshotEntry& entry) const {
    if (entry.type != SnapshotEntryType::kFolder) return false;
    return std::any_of(out_.gaps_.begin(), out_.gaps_.end(), [&](const TreeGap& gap) {
      return !PathBefore(entry.path, gap.from) && (!gap.to || PathBefore(entry.path, *gap.to));
    });
  }

  bool LeftOut(std::string_view path) const {
    return !keep_name_.empty() && (path == keep_name_ || IsBelow(path, keep_name_));
  }

  Result<void> Add(const SnapshotEntry& entry, bool wanted) {
    OC_TRY(parent, FolderOf(entry));
    const uint32_t number = out_.size();
    if (number == kNoEntry - 1) return Fail(ErrorCode::kUsage, "the snapshot has too many entries");
    WantedEntry& added = out_.entries_.emplace_back();
    added.parent = parent;
    added.name = out_.bytes_.size();
    out_.bytes_ += name_;
    out_.bytes_ += '\0';
    added.type = entry.type;
    added.mode = static_cast<uint16_t>(entry.mode & 07777);
    added.uid = entry.uid;
    added.gid = entry.gid;
    added.mtime_ns = entry.mtime_ns;
    added.wanted = wanted;
    added.unsteady = entry.unsteady;
    if (entry.IsFile())
      added.size = entry.size, added.content = entry.content.kind, added.id = entry.content.id;
    if (!entry.xattrs.empty()) {
      added.xattrs = static_cast<uint32_t>(out_.xattrs_.size());
      out_.xattrs_.push_back(entry.xattrs);
    }
    if (added.IsFolder()) folders_.push_back({number, entry.path.size()});
    if (added.IsSymlink()) {
      added.link = static_cast<uint32_t>(out_.targets_.size());
      out_.targets_.push_back(entry.target);
    }
    if (added.IsHardLink()) hard_links_.emplace_back(number, entry.target);
    last_ = entry.path;
    return {};
  }

  // Number of the folder that the entry is in; its own name is name_ then.
  Result<uint32_t> FolderOf(const SnapshotEntry& entry) {
    const std::string_view path = entry.path;
    if (out_.size() == 0) {
      name_ = {};
      if (path.empty() && entry.type == SnapshotEntryType::kFolder) return 0;
      return Fail(ErrorCode::kCorrupt, StrCat("the tree '", tree_.Hex(), "' does not begin with its folder"));
    }
    size_t open = folders_.size();
    while (open > 1 && !IsBelow(path, std::string_view(last_).substr(0, folders_[open - 1].path_size)))
      --open;
    CloseFolders(open);
    const size_t above = folders_.back().path_size;
    name_ = path.substr(std::min(path.size(), above == 0 ? 0 : above + 1));
    if (PlainName(name_) && PathBefore(last_, path)) return folders_.back().number;
    return Fail(
        ErrorCode::kCorrupt,
        StrCat("the tree '", tree_.Hex(), "' has an entry that cannot be in a folder: ", Quoted(path, 200)));
  }

  // All but the first `left`.
  void CloseFolders(size_t left) {
    for (; folders_.size() > left; folders_.pop_back())
      out_.entries_[folders_.back().number].link = out_.size();
  }

  // Each hard link learns which wanted file it is. When that is not wanted, or not there, the first of them
  // becomes the file: it has all that is needed.
  void JoinHardLinks() {
    if (hard_links_.empty()) return;
    out_.has_hard_links_ = true;
    std::unordered_map<std::string, uint32_t> files;
    for (const auto& [number, target] : hard_links_) files.emplace(target, kNoEntry);
    FindFiles(&files);
    for (const auto& [number, target] : hard_links_) {
      uint32_t& file = files[target];
      if (file == kNoEntry || file > number) {
        file = number;
        out_.entries_[number].type = SnapshotEntryType::kFile;
      } else {
        out_.entries_[number].link = file;
        out_.entries_[file].has_links = true;
      }
    }
  }

  void FindFiles(std::unordered_map<std::string, uint32_t>* files) const {
    for (uint32_t number = 0; number < out_.size(); ++number) {
      if (!out_.entries_[number].IsFile()) continue;
      const auto found = files->find(out_.Path(number));
      if (found != files->end()) found->second = number;
    }
  }

  const Digest tree_;
  const std::string keep_name_;
  const GetMeta& get_;
  TreeReader reader_;
  WantedTree out_;
  std::vector<OpenFolder> folders_;  // on the way to the last entry
  std::string last_;                 // path of the last entry
  std::string_view name_;
  std::vector<std::pair<uint32_t, std::string>> hard_links_;
};

Result<WantedTree> WantedTree::Load(const Digest& tree, const Selection& selection, const GetMeta& get) {
  return WantedTreeLoader(tree, selection, get).Load(selection.paths);
}

std::string WantedTree::Path(uint32_t number) const {
  std::vector<uint32_t> chain;
  for (uint32_t at = number; at != 0; at = entries_[at].parent) chain.push_back(at);
  std::string path;
  for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
    if (!path.empty()) path += '/';
    path += Name(*at);
  }
  return path;
}

const std::vector<ExtendedAttribute>& WantedTree::Xattrs(uint32_t number) const {
  static const std::vector<ExtendedAttribute> kNone;
  const uint32_t at = entries_[number].xattrs;
  return at == kNoEntry ? kNone : xattrs_[at];
}

}  // namespace overcap
