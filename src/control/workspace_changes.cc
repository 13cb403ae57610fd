// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_changes.h"

#include <algorithm>
#include <limits>
#include <unistd.h>
#include <unordered_set>

#include "base/text.h"
#include "snapshot/restore/leftovers.h"

namespace overcap {
namespace {

constexpr size_t kNamed = 3;

Result<FolderLook> CompareWith(const FoundWorkspace& found, const Repository& repository, const Digest& tree,
                               std::optional<Digest> next = {}) {
  CompareRequest request;
  request.tree = tree;
  request.next = next;
  request.next_owners = geteuid() == 0;
  request.next_by_cache = next.has_value();
  request.folder = found.folder;
  request.seen_file = SeenFileOf(found.folder);
  request.exclude = found.workspace.exclude;
  request.most = std::numeric_limits<int64_t>::max();
  return LookAtFolder(repository, request);
}

// What stands in the folder itself; files that a restore has not brought yet are no changes.
std::vector<FolderDifference> OnlyThere(const std::vector<FolderDifference>& differences) {
  std::vector<FolderDifference> there;
  for (const FolderDifference& difference : differences) {
    if (difference.what != '-') there.push_back(difference);
  }
  return there;
}

// Pruned, or so damaged that nothing can be compared with it.
bool IsGone(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kCorrupt;
}

// The tree of that snapshot while it, or another one with the same tree, is in the repository.
Result<std::optional<Digest>> KeptTree(const FoundWorkspace& found, const Repository& repository,
                                       const std::string& id, const std::string& tree_hex) {
  const auto tree = Digest::FromHex(tree_hex);
  if (!tree || id.empty()) return std::optional<Digest>();
  const auto snapshot = repository.Find(found.workspace.name, id);
  if (snapshot && snapshot->record.tree == *tree) return tree;
  if (!snapshot && !IsGone(snapshot.error()) && snapshot.error().code != ErrorCode::kConflict)
    return Fail(snapshot.error());
  OC_TRY(all, repository.Snapshots(found.workspace.name));
  const bool kept =
      std::ranges::any_of(all, [&](const NamedSnapshot& other) { return other.record.tree == *tree; });
  return kept ? tree : std::nullopt;
}

}  // namespace

std::vector<FolderDifference> InBoth(const std::vector<FolderDifference>& first,
                                     const std::vector<FolderDifference>& second) {
  std::unordered_set<std::string_view> paths;
  for (const FolderDifference& difference : first) paths.insert(difference.path);
  std::vector<FolderDifference> both;
  for (const FolderDifference& difference : second) {
    if (paths.contains(difference.path)) both.push_back(difference);
  }
  return both;
}

Result<bool> BaseIsKept(const FoundWorkspace& found, const Repository& repository) {
  if (!found.copy) return false;
  OC_TRY(tree, KeptTree(found, repository, found.copy->base, found.copy->base_tree));
  return tree.has_value();
}

Result<LocalChanges> FindLocalChanges(const FoundWorkspace& found, const Repository& repository,
                                      const Digest& target, std::optional<FolderLook>* look) {
  const WorkspaceCopy copy = found.copy.value_or(WorkspaceCopy{});
  const bool in_part = !copy.restoring.empty();
  OC_TRY(base, KeptTree(found, repository, copy.base, copy.base_tree));
  OC_TRY(begun, KeptTree(found, repository, copy.restoring, copy.restoring_tree));
  LocalChanges changes;
  changes.known = false;
  if (base) {
    const bool restores = look != nullptr && *base != target && !in_part;
    auto since = CompareWith(found, repository, *base, restores ? std::optional(target) : std::nullopt);
    if (!since && !IsGone(since.error())) return Fail(since.error());
    if (since) {
      changes = {std::move(since->report.differences), true, since->report.newest_mtime_ns};
      const bool last = changes.None() || (*base == target && !in_part);
      if (last && look != nullptr && !in_part) *look = std::move(*since);
      if (last) return changes;
    }
  }
  bool first = !changes.known;
  for (const std::optional<Digest>& tree : {begun, std::optional(target)}) {
    if (!tree || (tree == base && changes.known) || (!first && tree == begun && *tree == target)) continue;
    auto other = CompareWith(found, repository, *tree);
    if (!other && *tree != target && IsGone(other.error())) continue;
    if (!other) return Fail(other.error());
    changes.newest_mtime_ns = other->report.newest_mtime_ns;
    changes.changes =
        first ? std::move(other->report.differences) : InBoth(changes.changes, other->report.differences);
    first = false;
  }
  if (!changes.known || in_part) changes.changes = OnlyThere(changes.changes);
  if (begun) OC_TRY_VOID(EraseLeftovers(repository, *begun, found.folder, &changes.changes));
  return changes;
}

std::string SomeOf(const std::vector<FolderDifference>& changes) {
  std::vector<std::string> names;
  for (const FolderDifference& change : changes) {
    if (names.size() == kNamed) break;
    names.push_back(Quoted(change.path, 120));
  }
  std::string text = Join(names, ", ");
  if (changes.size() > kNamed) text += StrCat(" and ", changes.size() - kNamed, " more");
  return text;
}

}  // namespace overcap
