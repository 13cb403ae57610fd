// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "model/job_record.h"

namespace overcap {

// kDenied for a job of another user of a shared machine: its record is the public row, which names no folder
// (docs/formats/system-engine.md).
Result<void> CheckNotOthers(const JobRecord& record);

}  // namespace overcap
