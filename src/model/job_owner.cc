// SPDX-License-Identifier: Apache-2.0
#include "model/job_owner.h"

#include <nlohmann/json.hpp>

#include "model/json_fields.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostGroups = 65'536;  // NGROUPS_MAX

bool IsId(const Json& value) {
  return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() < UINT32_MAX;
}

bool IsLimit(const Json& value) {
  return value.is_array() && value.size() == 2 && value[0].is_number_integer() &&
         value[1].is_number_integer() && value[0].get<int64_t>() >= -1 && value[1].get<int64_t>() >= -1;
}

}  // namespace

void WriteOwner(JsonWriter* out, const JobOwner& owner) {
  out->BeginObject().Field("uid", owner.uid).Field("gid", owner.gid);
  out->Key("groups").BeginArray();
  for (const int64_t group : owner.groups) out->Int(group);
  out->EndArray().Key("limits").BeginObject();
  for (const ResourceLimit& limit : owner.limits) {
    out->Key(limit.name).BeginArray().Int(limit.soft);
    out->Int(limit.hard).EndArray();
  }
  out->EndObject().EndObject();
}

Result<JobOwner> ReadOwner(const Json& object) {
  FieldReader reader(object, "owner of the job spec");
  JobOwner owner;
  reader.Read("uid", &owner.uid);
  reader.Read("gid", &owner.gid);
  if (owner.uid < 0 || owner.uid >= UINT32_MAX) reader.Bad("uid", "user id");
  if (owner.gid < 0 || owner.gid >= UINT32_MAX) reader.Bad("gid", "group id");
  const Json* groups = reader.Array("groups");
  if (groups != nullptr && groups->size() > kMostGroups) reader.Bad("groups", "list of groups");
  for (size_t i = 0; groups != nullptr && i < groups->size() && i < kMostGroups; ++i) {
    if (!IsId((*groups)[i])) {
      reader.Bad("groups", "list of group ids");
      break;
    }
    owner.groups.push_back((*groups)[i].get<int64_t>());
  }
  const Json* limits = reader.Object("limits");
  for (auto it = limits == nullptr ? Json::const_iterator() : limits->begin();
       limits != nullptr && it != limits->end(); ++it) {
    if (!IsLimit(*it)) {
      reader.Bad("limits", "mapping of names to two numbers");
      break;
    }
    owner.limits.push_back({it.key(), (*it)[0].get<int64_t>(), (*it)[1].get<int64_t>()});
  }
  OC_TRY_VOID(reader.Check());
  return owner;
}

}  // namespace overcap
