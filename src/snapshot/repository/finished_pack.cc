// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/finished_pack.h"

#include "snapshot/repository/object_keys.h"

namespace overcap {
namespace {

Result<std::vector<std::string>> Sealed(const PackSeal& seal, const FinishedPack& pack) {
  std::vector<std::string> sealed(pack.stored.size());
  for (size_t number = 0; number < sealed.size(); ++number) {
    sealed[number].reserve(pack.stored[number]->size() + PackSeal::kOverhead);
    OC_TRY_VOID(seal.Seal(number, *pack.stored[number], &sealed[number]));
  }
  return sealed;
}

}  // namespace

Result<IndexedPack> PutPack(const Repository& repository, const FinishedPack& pack) {
  const std::string head = pack.head.Encode();
  IndexedPack indexed;
  indexed.kind = pack.head.kind;
  indexed.footer = EncodePackFooter(pack.blocks);
  std::string footer = indexed.footer;
  std::vector<std::string> sealed;
  std::vector<std::string_view> pieces{head};
  if (pack.head.encrypted) {
    const PackSeal seal(*repository.master(), pack.head.salt, head);
    OC_TRY(blocks, Sealed(seal, pack));
    sealed = std::move(blocks);
    footer.clear();
    OC_TRY_VOID(seal.Seal(PackSeal::kFooter, indexed.footer, &footer));
    for (const std::string& block : sealed) pieces.push_back(block);
  } else {
    for (const auto& block : pack.stored) pieces.push_back(*block);
  }
  const std::string tail = EncodePackTail(footer.size());
  pieces.push_back(footer);
  pieces.push_back(tail);
  for (const std::string_view piece : pieces) indexed.size += static_cast<int64_t>(piece.size());
  indexed.stored_footer_size = static_cast<int64_t>(footer.size());
  indexed.id = PackId(head, footer);
  OC_TRY_VOID(repository.store().Put(PackKey(indexed.id), pieces, PutMode::kReplace));
  return indexed;
}

}  // namespace overcap
