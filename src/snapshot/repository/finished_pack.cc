// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/finished_pack.h"

#include "base/crc32c.h"
#include "snapshot/repository/object_keys.h"

namespace overcap {
namespace {

Result<std::vector<std::string>> SealBlocks(const PackSeal& seal, FinishedPack* pack) {
  std::vector<std::string> sealed(pack->stored.size());
  for (size_t number = 0; number < sealed.size(); ++number) {
    sealed[number].reserve(pack->stored[number]->size() + PackSeal::kOverhead);
    OC_TRY_VOID(seal.Seal(number, *pack->stored[number], &sealed[number]));
    pack->blocks[number].check = Crc32c(sealed[number]);
  }
  return sealed;
}

Result<IndexedPack> Put(const Repository& repository, const PackHead& head, std::string plain_footer,
                        std::string_view stored_footer, std::vector<std::string_view> pieces) {
  const std::string encoded_head = head.Encode();
  const std::string tail = EncodePackTail(stored_footer.size());
  pieces.insert(pieces.begin(), encoded_head);
  pieces.push_back(stored_footer);
  pieces.push_back(tail);
  IndexedPack indexed{.id = PackId(encoded_head, stored_footer),
                      .kind = head.kind,
                      .size = 0,
                      .stored_footer_size = static_cast<int64_t>(stored_footer.size()),
                      .footer = std::move(plain_footer)};
  for (const std::string_view piece : pieces) indexed.size += static_cast<int64_t>(piece.size());
  OC_TRY_VOID(repository.store().Put(PackKey(indexed.id), pieces, PutMode::kReplace));
  return indexed;
}

}  // namespace

Result<IndexedPack> PutPack(const Repository& repository, FinishedPack* pack) {
  if (!pack->head.encrypted) {
    const std::string footer = EncodePackFooter(pack->blocks);
    std::vector<std::string_view> pieces;
    for (const auto& block : pack->stored) pieces.push_back(*block);
    return Put(repository, pack->head, footer, footer, std::move(pieces));
  }
  const PackSeal seal(*repository.master(), pack->head.salt, pack->head.Encode());
  OC_TRY(sealed, SealBlocks(seal, pack));
  const std::string footer = EncodePackFooter(pack->blocks);
  std::string stored_footer;
  OC_TRY_VOID(seal.Seal(PackSeal::kFooter, footer, &stored_footer));
  return Put(repository, pack->head, footer, stored_footer, {sealed.begin(), sealed.end()});
}

}  // namespace overcap
