// SPDX-License-Identifier: Apache-2.0
// Which chunks are in use.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/digest_table.h"

namespace overcap {

class ChunkSet {
 public:
  bool Has(const Digest& id) const { return ids_.Find(id) != Table::kNone; }
  // False when it was there.
  bool Insert(const Digest& id) {
    if (Has(id)) return false;
    ids_.Add({id});
    return true;
  }
  uint32_t size() const { return ids_.size(); }
  const Digest& operator[](uint32_t number) const { return ids_[number].id; }

 private:
  struct Member {
    Digest id;
  };
  using Table = DigestTable<Member>;
  Table ids_;
};

struct LiveTree {
  Digest id;
  std::string name;  // for messages: "snapshot 'abc' of 'work'"
};

// Everything that the trees need. The error of the first tree that cannot be read, with its name.
Result<ChunkSet> FindLiveChunks(const Repository& repository, const ChunkIndex& index,
                                const std::vector<LiveTree>& trees);

}  // namespace overcap
