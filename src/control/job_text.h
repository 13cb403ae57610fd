// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/job_record.h"

namespace overcap {

// "2 GPUs (0,1), 2 ranks, 4 CPUs, at most 4h": what a job asked for, with the GPUs that it has.
std::string ResourcesLine(const JobRecord& record);

}  // namespace overcap
