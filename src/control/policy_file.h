// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "model/policy/policy_text.h"

namespace overcap {

// The policy that a file holds, with all that is to be said about it. Errors are those of the file itself: it
// is not there, cannot be read, is larger than a policy may be.
Result<PolicyReading> LookAtPolicyFile(const std::string& path);

// The policy, or kUsage "FILE:LINE: ..." for the first error.
Result<Policy> ReadPolicyFile(const std::string& path);

}  // namespace overcap
