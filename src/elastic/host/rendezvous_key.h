// SPDX-License-Identifier: Apache-2.0
// The key of an elastic group whose user set none: a file that the agents of this user share through a common
// home, and that no other user can read.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/random.h"

namespace overcap::elastic {

// <folder>/<id>.key; made with a new key when it is not there. Agents that come at the same time get the same
// one. kDenied: the file is not ours, or others may read it.
Result<std::string> SharedKey(const std::string& folder, std::string_view id, Random* random);

std::string KeyFileOf(const std::string& folder, std::string_view id);

// What to type on a host that does not see the file; `host` has it.
std::string KeyLine(const std::string& host, const std::string& file);

}  // namespace overcap::elastic
