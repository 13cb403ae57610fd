// SPDX-License-Identifier: Apache-2.0
#include "agent/spare.h"

#include <sys/resource.h>

#include "snapshot/code_tree.h"
#include "snapshot/materialise.h"
#include "snapshot/store.h"

namespace overcap {
namespace {

constexpr int64_t kSmallTree = 64;  // entries

}  // namespace

Result<int> RunSpare(const std::vector<std::string>& args) {
  if (args.size() != 4 || args[0] != "--store" || args[2] != "--tree") {
    return Fail(ErrorCode::kUsage, "agent spare takes --store DIR --tree ID");
  }
  (void)setpriority(PRIO_PROCESS, 0, 10);
  OC_TRY(store, SnapshotStore::Open(args[1]));
  OC_TRY(entries,
         WithCodeTree(store, args[3], [](const CodeTree& tree, bool) { return tree.CountEntries(); }));
  if (entries < kSmallTree) return kSpareNotWorthIt;
  OC_TRY_VOID(PrepareSpare(store, args[3]));
  return 0;
}

}  // namespace overcap
