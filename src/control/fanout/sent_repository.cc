// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/sent_repository.h"

#include <memory>

#include "base/text.h"
#include "stores/all_stores.h"

namespace overcap {

Result<Repository> RepositoryOf(const std::vector<fanout::Object>& objects, const Digest& tree,
                                ChunkSource* source) {
  OC_TRY(memory, OpenStore(StrCat("mem:fanout-", tree.Hex()), true));
  for (const fanout::Object& object : objects) OC_TRY_VOID(memory->Put(object.key, object.content));
  OC_TRY(store, VirtualPacks::Open(std::shared_ptr<Store>(std::move(memory)), source));
  return Repository::Open({.store = std::move(store)});
}

}  // namespace overcap
