// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/pack_footer.h"

#include <algorithm>

#include "base/text.h"
#include "snapshot/repository/object_keys.h"

namespace overcap {
namespace {

constexpr int64_t kFirstRead = 65'536;      // has the whole footer of most packs
constexpr size_t kFooterMost = 67'108'864;  // what is read into memory, whatever a tail says
constexpr int64_t kEnds = kPackHeadSize + kPackTailSize;

Error Damaged(const std::string& key, std::string_view why) {
  return {ErrorCode::kCorrupt, StrCat("pack '", key, "' is damaged: ", why), ""};
}

// The last `want` bytes, of which `end` has some already.
Result<std::string> Longer(const Store& store, const std::string& key, int64_t size, int64_t want,
                           const std::string& end) {
  const int64_t have = static_cast<int64_t>(end.size());
  if (want <= have) return end.substr(static_cast<size_t>(have - want));
  OC_TRY(more, store.Get(key, size - want, want - have));
  return more + end;
}

Result<std::string> InThePlain(const Repository& repository, const std::string& head, const PackHead& parsed,
                               std::string stored) {
  if (!parsed.encrypted) return stored;
  if (!repository.master()) return Fail(ErrorCode::kCorrupt, "it is encrypted, the repository is not");
  return PackSeal(*repository.master(), parsed.salt, head).Open(PackSeal::kFooter, stored);
}

Result<PackFooter> Parse(const Repository& repository, const Digest& pack, const std::string& head,
                         std::string stored) {
  if (PackId(head, stored) != pack) return Fail(ErrorCode::kCorrupt, "its head or footer is not what it was");
  OC_TRY(parsed, PackHead::Decode(head));
  PackFooter footer{.kind = parsed.kind, .stored_size = static_cast<int64_t>(stored.size()), .blocks = {}};
  OC_TRY(plain, InThePlain(repository, head, parsed, std::move(stored)));
  OC_TRY(blocks, DecodePackFooter(plain));
  footer.blocks = std::move(blocks);
  return footer;
}

}  // namespace

Result<PackFooter> ReadPackFooter(const Repository& repository, const Digest& pack, int64_t size) {
  const Store& store = repository.store();
  const std::string key = PackKey(pack);
  if (size < kEnds) return Fail(Damaged(key, "too short"));
  OC_TRY(head, store.Get(key, 0, kPackHeadSize));
  const int64_t first = std::min<int64_t>(size - static_cast<int64_t>(kPackHeadSize), kFirstRead);
  OC_TRY(end, store.Get(key, size - first, first));
  if (static_cast<int64_t>(end.size()) != first) return Fail(Damaged(key, "it has shrunk"));
  const Result<size_t> footer_size = DecodePackTail(std::string_view(end).substr(end.size() - kPackTailSize));
  if (!footer_size || *footer_size > std::min(kFooterMost, static_cast<size_t>(size - kEnds)))
    return Fail(Damaged(key, "no tail"));
  OC_TRY(footer_and_tail, Longer(store, key, size, static_cast<int64_t>(*footer_size + kPackTailSize), end));
  Result<PackFooter> footer = Parse(repository, pack, head, footer_and_tail.substr(0, *footer_size));
  if (!footer) return Fail(Damaged(key, footer.error().message));
  return footer;
}

}  // namespace overcap
