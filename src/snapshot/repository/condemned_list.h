// SPDX-License-Identifier: Apache-2.0
// Which packs prunes have condemned, as the repository says now.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/presence_record.h"
#include "snapshot/repository/repository.h"

namespace overcap {

struct CondemnedObject {
  std::string id;
  CondemnedRecord record;
};

struct CondemnedList {
  std::vector<CondemnedObject> objects;
  std::vector<std::string> damaged;  // ids of objects that cannot be read: what they name is not known

  std::unordered_set<Digest> Packs() const;
  std::vector<std::string> Ids() const;
};

Result<CondemnedList> ListCondemned(const Repository& repository);

// For who found a chunk of the pack damaged: condemns it as a prune would that has gone since. So writers
// store its chunks again, readers prefer the new ones, and the next prune removes it when nothing in it is
// missed.
Result<void> CondemnDamagedPack(const Repository& repository, const Digest& pack);

// kCorrupt, saying what to do, when an object is damaged: who adds or removes must know all of them.
Result<void> AllReadable(const CondemnedList& list);

}  // namespace overcap
