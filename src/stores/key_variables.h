// SPDX-License-Identifier: Apache-2.0
// The variables of an environment that hold keys of stores.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sys/variables.h"

namespace overcap {

bool IsStoreKeyVariable(std::string_view name);

// `env` (NAME=VALUE) with the keys that `own` has; of a service of which it has keys itself none are taken.
std::vector<std::string> WithStoreKeysOf(const Variables& own, std::vector<std::string> env);

}  // namespace overcap
