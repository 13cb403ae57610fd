// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/job_stores.h"

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "control/stores/config_stores.h"
#include "model/json_fields.h"

namespace overcap {

Result<StoreBook> BookOfMounts(const std::vector<MountSpec>& mounts, const Variables& variables) {
  StoreBook book;
  book.variables = variables;
  for (const MountSpec& mount : mounts) {
    StoreEntry entry;
    entry.at = mount.store;
    for (const auto& [name, value] : mount.access) OC_TRY_VOID(SetStoreField(name, value, &entry));
    book.entries[mount.name] = std::move(entry);
  }
  return book;
}

Result<StorePlace> PlaceOfMount(const MountSpec& mount) {
  OC_TRY(location, ParseStoreLocation(mount.store));
  return StorePlace{std::move(location), mount.name};
}

std::string MountsRecordText(const MountsRecord& record) {
  JsonWriter out;
  out.BeginObject().Field("host", record.host).Key("mounts");
  WriteMounts(&out, record.mounts);
  return out.EndObject().Take();
}

Result<MountsRecord> ParseMountsRecord(const std::string& text) {
  OC_TRY(object, ParseJsonObject(text, "record of mounts"));
  FieldReader reader(object, "record of mounts");
  MountsRecord record;
  reader.Read("host", &record.host);
  const nlohmann::json* items = reader.Array("mounts");
  OC_TRY_VOID(reader.Check());
  if (items == nullptr) return record;
  OC_TRY(mounts, ReadMounts(*items));
  OC_TRY_VOID(CheckMounts(mounts));
  record.mounts = std::move(mounts);
  return record;
}

}  // namespace overcap
