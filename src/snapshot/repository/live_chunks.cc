// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/live_chunks.h"

#include "base/text.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/repository/chunk_reader.h"

namespace overcap {

Result<ChunkSet> FindLiveChunks(const Repository& repository, const ChunkIndex& index,
                                const std::vector<LiveTree>& trees) {
  ChunkSet live;
  ChunkReader reader(repository, index);
  const TreeVisitor visitor{.enter_meta = [&](const Digest& id) { return live.Insert(id); },
                            .on_data = [&](const Digest& id) { live.Insert(id); }};
  for (const LiveTree& tree : trees) {
    const Result<void> visited = VisitTree(
        tree.id, [&](const Digest& id) { return reader.Get(id); }, visitor);
    if (!visited) {
      return Fail(visited.error().code,
                  StrCat("cannot read the tree of ", tree.name, ": ", visited.error().message));
    }
  }
  return live;
}

}  // namespace overcap
