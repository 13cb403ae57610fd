// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/condemned_list.h"

#include "base/text.h"
#include "snapshot/repository/object_keys.h"

namespace overcap {
namespace {

constexpr int64_t kCondemnedMost = 67'108'864;  // bytes: a million packs; a longer one counts as damaged

}  // namespace

std::unordered_set<Digest> CondemnedList::Packs() const {
  std::unordered_set<Digest> packs;
  for (const CondemnedObject& object : objects) {
    packs.insert(object.record.packs.begin(), object.record.packs.end());
  }
  return packs;
}

std::vector<std::string> CondemnedList::Ids() const {
  std::vector<std::string> ids;
  for (const CondemnedObject& object : objects) ids.push_back(object.id);
  return ids;
}

Result<CondemnedList> ListCondemned(const Repository& repository) {
  CondemnedList list;
  OC_TRY(found, repository.store().ListAll(std::string(kCondemnedPrefix)));
  for (const StoredObjectInfo& info : found) {
    const std::optional<std::string> id = ParsePresenceKey(kCondemnedPrefix, info.key);
    if (!id) continue;
    Result<std::string> bytes = repository.store().Get(info.key, 0, kCondemnedMost);
    if (!bytes && bytes.error().code == ErrorCode::kNotFound) continue;  // that prune has just ended
    if (!bytes && bytes.error().code != ErrorCode::kCorrupt) return Fail(std::move(bytes).error());
    Result<CondemnedRecord> record = bytes ? DecodeCondemnedRecord(*bytes, info.key) : Fail(bytes.error());
    if (record) {
      list.objects.push_back({*id, *std::move(record)});
    } else {
      list.damaged.push_back(*id);
    }
  }
  return list;
}

Result<void> CondemnDamagedPack(const Repository& repository, const Digest& pack) {
  OC_TRY(list, ListCondemned(repository));
  if (list.Packs().contains(pack)) return {};
  const CondemnedRecord record{.packs = {pack}, .began_us = repository.clock().WallUs()};
  return repository.store().Put(CondemnedKey(NewPresenceId(repository.random())),
                                EncodeCondemnedRecord(record));
}

Result<void> AllReadable(const CondemnedList& list) {
  if (list.damaged.empty()) return {};
  return Fail(ErrorCode::kCorrupt, StrCat("object '", CondemnedKey(list.damaged.front()), "' is damaged"),
              "a prune of the repository removes it");
}

}  // namespace overcap
