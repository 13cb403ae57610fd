// SPDX-License-Identifier: Apache-2.0
// What `overcap doctor` looks at.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "control/config.h"

namespace overcap {

enum class Health { kFine, kWorse, kBroken };  // kWorse: works, but something would be better
std::string_view HealthName(Health health);    // "ok", "warning", "error"

struct Finding {
  std::string topic;  // "gpus"
  Health health = Health::kFine;
  std::string text;  // what was found, one line
  std::string hint;  // what to do about it; may be empty
};

struct DoctorSubject {
  std::string root;
  Result<Config> config;
  std::string path;  // $PATH, where helpful tools are looked for
};

// Looks at everything; takes some seconds when a GPU driver hangs, leaves nothing behind.
std::vector<Finding> Examine(const DoctorSubject& subject);

}  // namespace overcap
