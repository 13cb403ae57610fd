// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/block_fetch.h"

#include "base/crc32c.h"
#include "base/text.h"
#include "snapshot/repository/object_keys.h"

namespace overcap {

Result<void> BlockOpener::Open(const Digest& pack, uint32_t number, const BlockPlace& place,
                               std::string_view stored, int64_t wanted, BlockDecompressor* decompressor,
                               std::string* raw) {
  if (stored.size() != place.stored_size) {
    return Fail(ErrorCode::kCorrupt, StrCat("pack '", PackKey(pack), "' is too short"));
  }
  if (Crc32c(stored) != place.check) {
    return Fail(ErrorCode::kCorrupt, StrCat("pack '", PackKey(pack), "': block ", number, " is damaged"));
  }
  std::string plain;
  if (repository_.master()) {
    OC_TRY(seal, SealOf(pack));
    Result<std::string> opened = seal->Open(number, stored);
    if (!opened) {
      return Fail(opened.error().code,
                  StrCat("pack '", PackKey(pack), "', block ", number, ": ", opened.error().message));
    }
    plain = *std::move(opened);
    stored = plain;
  }
  Result<void> done = decompressor->DecompressFront(place.codec, stored, place.raw_size, wanted, raw);
  if (!done) {
    return Fail(done.error().code,
                StrCat("pack '", PackKey(pack), "', block ", number, ": ", done.error().message));
  }
  return {};
}

Result<std::shared_ptr<const PackSeal>> BlockOpener::SealOf(const Digest& pack) {
  {
    const std::lock_guard lock(mutex_);
    if (last_seal_ && last_pack_ == pack) return last_seal_;
  }
  OC_TRY(head, repository_.store().Get(PackKey(pack), 0, kPackHeadSize));
  const Result<PackHead> parsed = PackHead::Decode(head);
  if (!parsed) {
    return Fail(ErrorCode::kCorrupt, StrCat("pack '", PackKey(pack), "': ", parsed.error().message));
  }
  auto seal = std::make_shared<const PackSeal>(*repository_.master(), parsed->salt, head);
  const std::lock_guard lock(mutex_);
  last_pack_ = pack;
  last_seal_ = seal;
  return std::shared_ptr<const PackSeal>(seal);
}

Result<void> CheckChunk(const Digest& pack, const Digest& id, std::string_view bytes) {
  if (Sha256Of(bytes) == id) return {};
  return Fail(ErrorCode::kCorrupt, StrCat("chunk '", id.Hex(), "' in pack '", PackKey(pack), "' is damaged"));
}

}  // namespace overcap
