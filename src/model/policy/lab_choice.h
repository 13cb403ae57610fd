// SPDX-License-Identifier: Apache-2.0
// With which lab a user's job runs, and whose jobs a user may stop. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/policy/policy.h"

namespace overcap {

// `asked` (--account), else the user's default lab, which is the only one of most. kDenied when the user is
// not in it or in none at all; the hint names those there are.
Result<std::string> ChooseLab(const Policy& policy, std::string_view user, const std::string& asked);

// Whether the user is named as an administrator of this lab; false for labs that the policy does not know.
bool IsLabAdmin(const Policy& policy, std::string_view user, std::string_view lab);
// Of the whole cluster, beside root.
bool IsClusterAdmin(const Policy& policy, std::string_view user);

}  // namespace overcap
