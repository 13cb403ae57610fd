// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/tree_guard.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/format/tree_walk.h"
#include "snapshot/path_order.h"

namespace overcap {
namespace {

using Place = TreeWalk::Place;

// One of the two trees.
struct Side {
  TreeWalk walk;
  TreeGuard guard;

  Side(const Digest& tree, const GetMeta* get) : walk(tree, get), guard(tree, get) {}

  Result<void> Open() {
    OC_TRY_VOID(walk.Open());
    return walk.place() == Place::kEntry ? guard.Check(walk.page()) : Result<void>();
  }
  bool AtEnd() const { return walk.place() == Place::kEnd; }
  bool Unread() const { return walk.place() == Place::kUnread; }
};

// What has to be read next: of two that begin at the same path the higher, since the other may be in it. What
// begins before the other cannot be the same as it. nullptr: both are at entries, or one is at an entry that
// comes first.
Side* ToOpen(Side* a, Side* b) {
  if (a->AtEnd()) return b->Unread() ? b : nullptr;
  if (b->AtEnd()) return a->Unread() ? a : nullptr;
  const bool a_first = PathBefore(a->walk.path(), b->walk.path());
  const bool b_first = PathBefore(b->walk.path(), a->walk.path());
  if (a_first) return a->Unread() ? a : nullptr;
  if (b_first) return b->Unread() ? b : nullptr;
  if (!a->Unread()) return b->Unread() ? b : nullptr;
  return b->Unread() && b->walk.level() > a->walk.level() ? b : a;
}

// Which of the two entries comes first; both when they have one path. ToOpen has seen to it that it is read.
EntryChange FirstOf(const Side& a, const Side& b) {
  EntryChange change;
  if (!a.AtEnd() && (b.AtEnd() || !PathBefore(b.walk.path(), a.walk.path()))) change.before = &a.walk.entry();
  if (!b.AtEnd() && (a.AtEnd() || !PathBefore(a.walk.path(), b.walk.path()))) change.after = &b.walk.entry();
  return change;
}

}  // namespace

Result<void> DiffTrees(const Digest& before, const Digest& after, const GetMeta& get,
                       const std::function<Result<void>(const EntryChange&)>& on_change) {
  Side a(before, &get), b(after, &get);
  while (!a.AtEnd() || !b.AtEnd()) {
    if (a.Unread() && b.Unread() && a.walk.id() == b.walk.id()) {
      a.walk.Skip();
      b.walk.Skip();
      continue;
    }
    if (Side* side = ToOpen(&a, &b)) {
      OC_TRY_VOID(side->Open());
      continue;
    }
    const EntryChange change = FirstOf(a, b);
    const bool same = change.before != nullptr && change.after != nullptr && *change.before == *change.after;
    if (!same) OC_TRY_VOID(on_change(change));
    if (change.before != nullptr) a.walk.Skip();
    if (change.after != nullptr) b.walk.Skip();
  }
  return {};
}

}  // namespace overcap
