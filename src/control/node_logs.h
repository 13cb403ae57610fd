// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/job_record.h"

namespace overcap {

// The logs of an elastic job, one for each node that it got: a record names those only that it has at least.
// Other jobs stay as they are.
void AddNodeLogs(JobRecord* record);

}  // namespace overcap
