// SPDX-License-Identifier: Apache-2.0
// Where the keys of a store come from (docs/formats/stores.md, "Credentials").
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "control/stores/store_entry.h"
#include "stores/all_stores.h"
#include "stores/location.h"
#include "sys/variables.h"

namespace overcap {

// Keys of an EC2 instance's role. kNotFound where there is no such service.
using InstanceKeys = std::function<Result<StoreAccess::S3>()>;

// `entry` may be nullptr. kDenied when no key is to be found, naming the places; no error repeats a key.
Result<StoreAccess::S3> FindS3Access(const StoreEntry* entry, const Variables& variables,
                                     const InstanceKeys& instance);
Result<StoreAccess::Azure> FindAzureAccess(const StoreLocation& location, const StoreEntry* entry,
                                           const Variables& variables);

}  // namespace overcap
