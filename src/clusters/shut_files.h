// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/job_record.h"

namespace overcap {

// The record of a job of another user, for those who may know it: its folder, its logs and how its store is
// reached are not in it, so that nothing opens them with the rights or the keys of this process. Callers go
// by the empty `dir` (control/others_job.h).
inline void ShutFiles(JobRecord* record) {
  record->dir.clear();
  record->logs.clear();
  record->spec.store.options.clear();
}

}  // namespace overcap
