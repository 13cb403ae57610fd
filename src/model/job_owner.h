// SPDX-License-Identifier: Apache-2.0
// As whom a job runs where one engine serves many users, as the kernel told the engine at the submit
// (docs/formats/system-engine.md). Never what a client says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/json_writer.h"
#include "base/result.h"

namespace overcap {

struct ResourceLimit {
  std::string name;              // as prlimit(1) calls it: "nofile", "nproc"
  int64_t soft = -1, hard = -1;  // -1: none
  bool operator==(const ResourceLimit&) const = default;
};

struct JobOwner {
  int64_t uid = -1;  // -1: the engine's own user, as with engines of one user
  int64_t gid = -1;
  std::vector<int64_t> groups;  // of its submitter's process, beside gid
  std::vector<ResourceLimit> limits;
  bool operator==(const JobOwner&) const = default;
  bool told() const { return uid >= 0; }
};

void WriteOwner(JsonWriter* out, const JobOwner& owner);
Result<JobOwner> ReadOwner(const nlohmann::json& object);

}  // namespace overcap
