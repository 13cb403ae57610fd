// SPDX-License-Identifier: Apache-2.0
// The copies made ahead: spare/<boot>/<tree>-<n> of the local folder.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "snapshot/store.h"

namespace overcap {

inline constexpr int kMaxSpares = 4;      // of one tree
inline constexpr int kMaxSpareTrees = 2;  // the trees prepared last

// "spare/<boot>" of the running boot; "" when the kernel does not tell, then there are no spares.
std::string SpareFolder();

// Moves a spare of the tree to `target`, a path that does not exist. False when there is none that can be
// moved there; of several callers each gets its own or none.
Result<bool> TakeSpare(const SnapshotStore& store, const Digest& tree, const std::string& target);

int CountSpares(const SnapshotStore& store, const Digest& tree);

// Makes the complete copy `copy` (a path below the local folder) a spare; removes it when there are enough.
Result<void> AddSpare(const SnapshotStore& store, const Digest& tree, const std::string& copy);

// Removes the spares of all but the newest trees, and those of other boots.
void TrimSpares(const SnapshotStore& store);

// Removes the spares of one tree.
void DropSpares(const SnapshotStore& store, std::string_view tree_id);

}  // namespace overcap
