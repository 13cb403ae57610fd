// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/relied_check.h"

#include <unordered_set>

#include "snapshot/format/tree_pages.h"

namespace overcap {

Result<void> CheckTreeIsKept(const Digest& tree, const GetMeta& get,
                             const std::function<bool(const Digest&)>& has) {
  std::unordered_set<Digest> entered;
  bool all = true;
  const TreeVisitor visitor{.enter_meta =
                                [&](const Digest& id) {
                                  all = all && has(id);
                                  return all && entered.insert(id).second;
                                },
                            .on_data = [&](const Digest& id) { all = all && has(id); }};
  const Result<void> visited = VisitTree(tree, get, visitor);
  if (!visited && visited.error().code != ErrorCode::kNotFound &&
      visited.error().code != ErrorCode::kCorrupt) {
    return Fail(visited.error());
  }
  if (visited && all) return {};
  return Fail(ErrorCode::kConflict, "a prune has removed what this backup relied on", "try again");
}

}  // namespace overcap
