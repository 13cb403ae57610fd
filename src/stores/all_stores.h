// SPDX-License-Identifier: Apache-2.0
// Which store a location means: the only place outside their own folders that names them.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "stores/store.h"

namespace overcap {

// `location` is an absolute path (a folder, made when `create` is set and it is missing) or "mem:NAME"
// (memory of this process, for tests). kUsage for another scheme, kNotFound for a folder that is missing.
Result<std::unique_ptr<Store>> OpenStore(const std::string& location, bool create);

}  // namespace overcap
