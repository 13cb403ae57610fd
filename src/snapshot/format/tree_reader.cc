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

  State(const Digest& tree, GetMeta get_meta)
      : get(std::move(get_meta)), walk(tree, &get), guard(tree, &get) {}

  Result<void> Open() {
    OC_TRY_VOID(walk.Open());
    return walk.place() == TreeWalk::Place::kEntry ? guard.Check(walk.page()) : Result<void>();
  }
  Result<void> ToEntry() {
    if (given) walk.Skip();
    given = false;
    while (walk.place() == TreeWalk::Place::kUnread) OC_TRY_VOID(Open());
    return {};
  }
  Result<void> ToPath(std::string_view path) {
    given = false;
    OC_TRY_VOID(walk.Seek(path));
    return walk.place() == TreeWalk::Place::kEntry ? guard.Check(walk.page()) : Result<void>();
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

Result<void> TreeReader::Seek(std::string_view path) {
  if (state_->failed) return Fail(*state_->failed);
  return state_->Noted(state_->ToPath(path));
}

Result<const SnapshotEntry*> TreeReader::Next() {
  if (state_->failed) return Fail(*state_->failed);
  OC_TRY_VOID(state_->Noted(state_->ToEntry()));
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
