// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "stores/all_stores.h"

namespace overcap {

// The keys of the role of the EC2 instance that this is, by the metadata service, version 2 ("": where AWS
// has it). kNotFound, within about a second, where there is no such service or no role.
Result<StoreAccess::S3> KeysOfInstance(const std::string& endpoint);

// What the service says of a role: JSON. kNotFound when it says no keys; nothing of it is in the message.
Result<StoreAccess::S3> ParseInstanceKeys(const std::string& json);

}  // namespace overcap
