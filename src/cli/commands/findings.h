// SPDX-License-Identifier: Apache-2.0
// How `doctor` and `cluster check` show what they found.
#pragma once

#include <vector>

#include "base/json_writer.h"
#include "cli/output.h"
#include "control/doctor.h"

namespace overcap::cli {

bool IsHealthy(const std::vector<Finding>& findings);  // nothing is broken
void PrintFindings(const std::vector<Finding>& findings, Output& out);
void WriteFinding(const Finding& finding, JsonWriter* json);

}  // namespace overcap::cli
