// SPDX-License-Identifier: Apache-2.0
#include "model/job_store.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/json_fields.h"
#include "model/spec_from_json.h"

namespace overcap {
namespace {

constexpr size_t kMostOptions = 32;
constexpr std::string_view kWhat = "store of a job";

}  // namespace

void WriteJobStore(JsonWriter* out, const JobStore& store) {
  out->BeginObject();
  WriteBytes(out, "at", store.at);
  for (const auto& [name, value] : store.options) WriteBytes(out, name, value);
  out->EndObject();
}

std::string JobStoreToJson(const JobStore& store) {
  JsonWriter out;
  WriteJobStore(&out, store);
  return out.Take();
}

Result<JobStore> JobStoreFromJson(std::string_view json) {
  OC_TRY(object, ParseJsonObject(json, kWhat));
  return ReadJobStore(object);
}

Result<JobStore> ReadJobStore(const nlohmann::json& object) {
  if (!object.is_object()) return Fail(ErrorCode::kCorrupt, StrCat(kWhat, " is no JSON object"));
  FieldReader reader(object, kWhat);
  JobStore store;
  reader.Read("at", &store.at);
  for (const auto& [name, value] : object.items()) {
    if (name != "at" && store.options.size() < kMostOptions) reader.Read(name, &store.options[name]);
  }
  OC_TRY_VOID(reader.Check());
  if (store.at.empty()) return Fail(ErrorCode::kCorrupt, StrCat(kWhat, ": 'at' is missing"));
  return store;
}

std::string StoredJobKey(std::string_view id, std::string_view name) {
  return StrCat("jobs/", id, "/", name);
}

}  // namespace overcap
