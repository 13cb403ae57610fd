// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "control/config.h"
#include "model/policy/policy_text.h"

namespace overcap {

// The policy that a file holds, with all that is to be said about it. Errors are those of the file itself: it
// is not there, cannot be read, is larger than a policy may be.
Result<PolicyReading> LookAtPolicyFile(const std::string& path);

// Its bytes; the same errors.
Result<std::string> PolicyFileText(const std::string& path);

// The policy, or kUsage "FILE:LINE: ..." for the first error.
Result<Policy> ReadPolicyFile(const std::string& path);

// Where the engine of this machine gets its policy from: what a flag names, else the configuration; "": from
// nowhere. kUsage when that is no absolute path.
Result<std::string> EnginePolicyPath(const std::string& flag, const Config& config);

}  // namespace overcap
