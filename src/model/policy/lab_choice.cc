// SPDX-License-Identifier: Apache-2.0
#include "model/policy/lab_choice.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {

Result<std::string> ChooseLab(const Policy& policy, std::string_view user, const std::string& asked) {
  const std::vector<std::string> labs = LabsOf(policy, user);
  if (labs.empty()) {
    return Fail(ErrorCode::kDenied, StrCat("user '", user, "' is in no lab"),
                "an administrator has to name the user in the policy");
  }
  if (asked.empty()) return labs.front();
  if (std::ranges::find(labs, asked) != labs.end()) return asked;
  return Fail(ErrorCode::kDenied, StrCat("user '", user, "' is not in lab '", asked, "'"),
              StrCat("--account ", Join(labs, " or ")));
}

bool IsLabAdmin(const Policy& policy, std::string_view user, std::string_view lab) {
  const PolicyLab* found = FindPolicyLab(policy, lab);
  return found != nullptr && std::ranges::binary_search(found->admins, user);
}

bool IsClusterAdmin(const Policy& policy, std::string_view user) {
  return std::ranges::find(policy.admins, user) != policy.admins.end();
}

}  // namespace overcap
