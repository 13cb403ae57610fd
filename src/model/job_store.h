// SPDX-License-Identifier: Apache-2.0
// The store through which a job's code and logs go (docs/formats/job-store.md). It holds no key.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "base/result.h"

namespace overcap {

struct JobStore {
  std::string at = {};                              // a location with a scheme, or a folder; "": none
  std::map<std::string, std::string> options = {};  // how it is reached, by the names of `stores:`

  bool operator==(const JobStore&) const = default;
  bool empty() const { return at.empty(); }
};

void WriteJobStore(JsonWriter* out, const JobStore& store);  // an object
std::string JobStoreToJson(const JobStore& store);
// kCorrupt when it is no object of texts with `at`.
Result<JobStore> JobStoreFromJson(std::string_view json);

// Where things stand in a job store.
std::string StoredJobKey(std::string_view id, std::string_view name);  // "jobs/<id>/<name>"

}  // namespace overcap
