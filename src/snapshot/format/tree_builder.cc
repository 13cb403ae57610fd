// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "snapshot/format/entry_rules.h"
#include "snapshot/format/tree_page.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/path_order.h"

namespace overcap {

struct TreeBuilder::State {
  PutMeta put;
  TreeTotals totals;
  PageEncoder page;
  std::string before;  // path of the last entry
  bool before_is_folder = false;
  // Level 0 are the pages. Each level has its node above it open; only its last one is not put yet.
  struct Level {
    int64_t made = 0;
    Digest last;
    NodeEncoder above;
  };
  std::vector<Level> levels;

  const char* ProblemOf(const SnapshotEntry& entry, size_t common) const {
    const bool first = totals.entries == 0;
    if (first && !entry.path.empty()) return "the first entry is the folder itself";
    const char* problem = first ? nullptr : PathStepProblem(before, before_is_folder, entry.path, common);
    return problem != nullptr ? problem : EntryProblem(entry);
  }

  // A page or node of `level` is complete.
  Result<void> Put(size_t level, TreeChild child, std::string_view bytes) {
    OC_TRY(id, put(bytes));
    child.id = id;
    if (levels.size() == level) levels.emplace_back();
    ++levels[level].made;
    levels[level].last = id;
    levels[level].above.Add(child);
    return levels[level].above.Ended() ? PutNode(level + 1) : Result<void>();
  }
  Result<void> PutPage() {
    TreeChild child{.first = page.first(), .id = {}, .totals = page.totals()};
    return Put(0, std::move(child), page.Take());
  }
  Result<void> PutNode(size_t level) {
    NodeEncoder& node = levels[level - 1].above;
    TreeChild child{.first = node.first(), .id = {}, .totals = node.totals()};
    return Put(level, std::move(child), node.Take(static_cast<int>(level)));
  }
};

TreeBuilder::TreeBuilder(PutMeta put) : state_(std::make_unique<State>()) {
  state_->put = std::move(put);
}
TreeBuilder::~TreeBuilder() = default;

const TreeTotals& TreeBuilder::totals() const {
  return state_->totals;
}

Result<void> TreeBuilder::Add(const SnapshotEntry& entry) {
  State& state = *state_;
  const size_t common = CommonPrefix(state.before, entry.path);
  if (const char* problem = state.ProblemOf(entry, common)) {
    return Fail(ErrorCode::kInternal,
                StrCat("cannot take ", Quoted(entry.path), " into the tree: ", problem));
  }
  if (!state.page.Add(entry, common)) {
    return Fail(ErrorCode::kUsage,
                StrCat("the attributes of ", Quoted(entry.path), " are too large for a snapshot"));
  }
  const bool file = entry.type == SnapshotEntryType::kFile;
  AddTotals(&state.totals, {.entries = 1, .files = file ? 1 : 0, .bytes = file ? entry.size : 0});
  state.before.replace(common, std::string::npos, entry.path, common);
  state.before_is_folder = entry.type == SnapshotEntryType::kFolder;
  return state.page.Ended() ? state.PutPage() : Result<void>();
}

Result<Digest> TreeBuilder::Finish() {
  State& state = *state_;
  if (state.totals.entries == 0) return Fail(ErrorCode::kInternal, "a tree has at least one entry");
  if (!state.page.Empty()) OC_TRY_VOID(state.PutPage());
  for (size_t level = 0;; ++level) {
    if (state.levels[level].made == 1) return state.levels[level].last;
    if (!state.levels[level].above.Empty()) OC_TRY_VOID(state.PutNode(level + 1));
  }
}

}  // namespace overcap
