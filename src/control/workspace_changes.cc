// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_changes.h"

#include <limits>
#include <unistd.h>
#include <unordered_set>

#include "base/text.h"

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

Result<LocalChanges> FindLocalChanges(const FoundWorkspace& found, const Repository& repository,
                                      const Digest& target, std::optional<FolderLook>* look) {
  const auto base = Digest::FromHex(found.copy ? found.copy->base_tree : "");
  if (base) {
    const bool restores = look != nullptr && *base != target;
    auto since = CompareWith(found, repository, *base, restores ? std::optional(target) : std::nullopt);
    if (since && (since->report.Same() || *base == target)) {
      LocalChanges changes{std::move(since->report.differences)};
      if (look != nullptr) *look = std::move(*since);
      return changes;
    }
    if (since) {
      OC_TRY(from_target, CompareWith(found, repository, target));
      return LocalChanges{InBoth(since->report.differences, from_target.report.differences)};
    }
    const ErrorCode code = since.error().code;  // its tree may have been pruned
    if (code != ErrorCode::kNotFound && code != ErrorCode::kCorrupt) return Fail(since.error());
  }
  OC_TRY(from_target, CompareWith(found, repository, target));
  return LocalChanges{OnlyThere(from_target.report.differences), !base};
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
