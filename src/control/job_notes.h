// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/job_record.h"

namespace overcap {

// What the agents of the latest attempt noted for the user, in the order of their slots; the last 20 of them.
std::vector<std::string> ReadJobNotes(const JobRecord& record);

}  // namespace overcap
