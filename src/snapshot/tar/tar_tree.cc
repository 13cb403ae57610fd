// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_tree.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/text.h"
#include "snapshot/path_order.h"

namespace overcap {
namespace {

bool IsAbove(std::string_view folder, std::string_view path) {
  return folder.empty() ||
         (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/');
}

}  // namespace

Result<CleanedPath> CleanTarPath(std::string_view name, int strip, bool folder) {
  if (name.starts_with('/')) {
    return Fail(ErrorCode::kUsage, StrCat("the entry ", Quoted(name, 200), " has an absolute name"),
                "make the tar with relative names: tar -C FOLDER -c .");
  }
  const std::string_view whole = name;
  CleanedPath clean;
  int dropped = 0;
  bool any = false;
  while (!name.empty()) {
    const size_t slash = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, slash);
    name.remove_prefix(std::min(slash + 1, name.size()));
    if (part == "..") {
      return Fail(ErrorCode::kUsage, StrCat("the entry ", Quoted(whole, 200), " has '..' in its name"));
    }
    if (part.empty() || part == ".") continue;
    any = true;
    if (dropped < strip) {
      ++dropped;
      continue;
    }
    if (!clean.path.empty()) clean.path.push_back('/');
    clean.path.append(part);
  }
  // "./" is the folder itself when nothing is dropped; else the folder is what stands that deep.
  clean.gone = clean.path.empty() && !(folder && dropped == strip && (strip > 0 ? any : true));
  return clean;
}

size_t TarTree::Add(SnapshotEntry entry) {
  entries_.push_back(std::move(entry));
  return entries_.size() - 1;
}

// What a hard link stands for in the end.
uint32_t TarTree::Root(uint32_t number) const {
  while (target_[number] != kNone) number = target_[number];
  return number;
}

// The newest of that path that had come when the link came; else the first after it.
Result<uint32_t> TarTree::LinkTarget(uint32_t number) const {
  const std::string& path = entries_[number].target;
  auto at = std::lower_bound(
      order_.begin(), order_.end(), path,
      [&](uint32_t one, const std::string& wanted) { return PathBefore(entries_[one].path, wanted); });
  uint32_t found = kNone;
  for (; at != order_.end() && entries_[*at].path == path; ++at) {
    if (*at == number) continue;
    if (*at < number || found == kNone) found = *at;
  }
  if (found == kNone) {
    return Fail(ErrorCode::kCorrupt, StrCat("the hard link ", Quoted(entries_[number].path, 200),
                                            " leads to ", Quoted(path, 200), ", which is not in it"));
  }
  if (entries_[found].type == SnapshotEntryType::kFolder) {
    return Fail(ErrorCode::kCorrupt,
                StrCat("the hard link ", Quoted(entries_[number].path, 200), " leads to a folder"));
  }
  return found;
}

Result<void> TarTree::Resolve() {
  const auto count = static_cast<uint32_t>(entries_.size());
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
    const std::string &x = entries_[a].path, &y = entries_[b].path;
    return x == y ? a < b : PathBefore(x, y);
  });
  target_.assign(count, kNone);
  for (uint32_t number = 0; number < count; ++number) {
    if (entries_[number].type != SnapshotEntryType::kHardLink) continue;
    OC_TRY(target, LinkTarget(number));
    // Links that lead to each other in a circle: only those that look forward can.
    for (uint32_t at = target; at != kNone; at = target_[at]) {
      if (at == number) {
        return Fail(ErrorCode::kCorrupt,
                    StrCat("the hard link ", Quoted(entries_[number].path, 200), " leads to itself"));
      }
    }
    // Straight to the end of the chain, so that no chain grows long.
    target_[number] = Root(target);
  }
  needed_.assign(count, false);
  for (size_t i = 0; i < order_.size(); ++i) {
    if (i + 1 < order_.size() && entries_[order_[i]].path == entries_[order_[i + 1]].path) continue;
    kept_.push_back(order_[i]);
    needed_[Root(order_[i])] = true;
  }
  return {};
}

SnapshotEntry TarTree::Made(std::string path) const {
  SnapshotEntry folder;
  folder.path = std::move(path);
  folder.type = SnapshotEntryType::kFolder;
  folder.mode = 0755;
  folder.uid = defaults_.uid;
  folder.gid = defaults_.gid;
  folder.mtime_ns = defaults_.mtime_ns;
  return folder;
}

Result<void> TarTree::Visit(const std::function<Result<void>(const SnapshotEntry&)>& visit) {
  std::unordered_map<uint32_t, std::string> first;  // of files with hard links: the path that comes first
  for (const uint32_t number : kept_) {
    if (target_[number] != kNone) first.emplace(Root(number), "");
  }
  std::vector<std::string> above;  // the folders that the last entry is in, or is
  if (kept_.empty() || !entries_[kept_[0]].path.empty()) {
    OC_TRY_VOID(visit(Made("")));
    above.push_back("");
  }
  std::string last;  // the last entry, when it was no folder
  for (const uint32_t number : kept_) {
    SnapshotEntry entry = entries_[number];
    const std::string path = entry.path;
    if (path.empty() && entry.type != SnapshotEntryType::kFolder) {
      return Fail(ErrorCode::kCorrupt, "the folder itself is a file in it");
    }
    while (!above.empty() && !IsAbove(above.back(), path)) above.pop_back();
    for (size_t slash = path.find('/', above.empty() || above.back().empty() ? 0 : above.back().size() + 1);
         slash != std::string::npos; slash = path.find('/', slash + 1)) {
      std::string folder = path.substr(0, slash);
      if (folder == last) {
        return Fail(ErrorCode::kCorrupt,
                    StrCat(Quoted(last, 200), " is a file, and a folder with ", Quoted(path, 200), " in it"));
      }
      OC_TRY_VOID(visit(Made(folder)));
      above.push_back(std::move(folder));
    }
    const uint32_t root = Root(number);
    if (root != number) {
      entry = entries_[root];
      entry.path = path;
    }
    if (entry.type == SnapshotEntryType::kFolder) {
      above.push_back(path);
    } else {
      last = path;
    }
    if (const auto linked = first.find(root);
        linked != first.end() && entry.type == SnapshotEntryType::kFile) {
      if (linked->second.empty()) {
        linked->second = path;
      } else {
        entry.type = SnapshotEntryType::kHardLink;
        entry.target = linked->second;
      }
    }
    OC_TRY_VOID(visit(entry));
  }
  return {};
}

}  // namespace overcap
