// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace overcap {

// Makes `folder`/`at` a link to `target`, with the folders above it; fine when it is that already. A link or
// an empty folder that stands there is replaced; kConflict for anything else. Leads never out of `folder`.
Result<void> PlaceLink(const std::string& folder, const std::string& at, const std::string& target);
// Takes it away again if it still leads to `target`.
void RemoveLink(const std::string& folder, const std::string& at, const std::string& target);

}  // namespace overcap
