// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "stores/store.h"

namespace overcap {

// Parts are kept in memory until Finish puts them as one: for stores whose objects are in memory anyway.
// kUsage for a size below 0.
Result<std::unique_ptr<StoreUpload>> GatherUpload(Store* store, const std::string& key, int64_t size,
                                                  PutMode mode);

}  // namespace overcap
