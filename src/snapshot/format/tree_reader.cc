// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/tree_guard.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/format/tree_walk.h"

namespace overcap {

struct TreeReader::State {
  GetMeta get;
  TreeWalk walk;
  TreeGuard guard;
  bool given = false;           // the entry that the walk is at was handed out
  std::optional<Error> failed;  // nothing of a tree that is damaged is handed out after that
  std::function<void(const TreeGap&)> on_gap;
  std::vector<SnapshotEntry> made;  // folders that were lost, to be handed out before the entry of the walk
  size_t made_given = 0;
  bool begun = false;  // an entry was asked for

  State(const Digest& tree, GetMeta get_meta)
      : get(std::move(get_meta)), walk(tree, &get), guard(tree, &get) {}

  // Opens what the walk is in front of, or passes it over.
  Result<void> Open() {
    const bool may_skip = MaySkip();
    const TreeGap gap = may_skip ? GapHere() : TreeGap();
    Result<void> result = walk.Open();
    if (result && walk.place() == TreeWalk::Place::kEntry) result = guard.Check(walk.page());
    if (!result && may_skip && IsDamage(result.error())) {
      Tell(gap, std::move(result).error());
      walk.place() == TreeWalk::Place::kEntry ? walk.SkipPage() : walk.Skip();
      return {};
    }
    if (result && walk.place() == TreeWalk::Place::kEntry) MakeLostFolders();
    return result;
  }
  bool MaySkip() const { return on_gap != nullptr && !walk.AtRoot(); }
  TreeGap GapHere() const {
    TreeGap gap{.from = std::string(walk.path()), .to = {}, .entries = walk.entries(), .error = {}};
    if (const auto bound = walk.Bound()) gap.to.emplace(*bound);
    return gap;
  }
  void Tell(TreeGap gap, Error error) {
    gap.error = std::move(error);
    on_gap(gap);
  }
  void MakeLostFolders() {
    made.clear();
    made_given = 0;
    if (!begun && walk.path() != "") MakeFolder("");
    for (const std::string& folder : guard.lost_folders()) MakeFolder(folder);
  }
  void MakeFolder(const std::string& path) {
    SnapshotEntry& entry = made.emplace_back();
    entry.path = path;
    entry.type = SnapshotEntryType::kFolder;
    entry.mode = 0700;
  }
  Result<void> ToEntry() {
    if (given) walk.Skip();
    given = false;
    while (walk.place() == TreeWalk::Place::kUnread) OC_TRY_VOID(Open());
    return {};
  }
  Result<void> ToPath(std::string_view path) {
    given = false;
    begun = true;
    made.clear();
    made_given = 0;
    Result<void> result = walk.Seek(path);
    // In front of a page that cannot be read: the next step tells of it.
    if (!result && MaySkip() && IsDamage(result.error())) return {};
    if (!result || walk.place() != TreeWalk::Place::kEntry) return result;
    const TreeGap gap = MaySkip() ? GapHere() : TreeGap();
    result = guard.Check(walk.page());
    if (result || !MaySkip() || !IsDamage(result.error())) return result;
    Tell(gap, std::move(result).error());
    walk.SkipPage();
    return {};
  }
  // Remembers the first failure.
  Result<void> Noted(Result<void> result) {
    if (!result) failed = result.error();
    return result;
  }
};

TreeReader::TreeReader(const Digest& tree, GetMeta get)
    : state_(std::make_unique<State>(tree, std::move(get))) {}
TreeReader::~TreeReader() = default;

void TreeReader::SkipDamage(std::function<void(const TreeGap&)> on_gap) {
  state_->on_gap = std::move(on_gap);
  state_->guard.AllowLost();
}

Result<void> TreeReader::Seek(std::string_view path) {
  if (state_->failed) return Fail(*state_->failed);
  return state_->Noted(state_->ToPath(path));
}

Result<const SnapshotEntry*> TreeReader::Next() {
  if (state_->failed) return Fail(*state_->failed);
  OC_TRY_VOID(state_->Noted(state_->ToEntry()));
  if (!state_->begun && state_->walk.place() == TreeWalk::Place::kEnd) state_->MakeFolder("");
  state_->begun = true;
  if (state_->made_given < state_->made.size()) return &state_->made[state_->made_given++];
  if (state_->walk.place() == TreeWalk::Place::kEnd) return nullptr;
  state_->given = true;
  return &state_->walk.entry();
}

Result<TreeTotals> TreeReader::Totals() {
  if (state_->failed) return Fail(*state_->failed);
  if (!state_->walk.totals()) OC_TRY_VOID(state_->Noted(state_->Open()));
  return *state_->walk.totals();
}

Result<std::optional<SnapshotEntry>> FindEntry(const Digest& tree, std::string_view path,
                                               const GetMeta& get) {
  TreeWalk walk(tree, &get);
  OC_TRY_VOID(walk.Seek(path));
  if (walk.place() != TreeWalk::Place::kEntry || walk.path() != path) return std::optional<SnapshotEntry>();
  return std::optional<SnapshotEntry>(walk.entry());
}

}  // namespace overcap
