// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/job_record.h"

namespace overcap {

// Removes from the record of another user's job its folder, its logs and how its store is reached, so that
// nothing opens them with the rights or the keys of this process. Callers check for the empty `dir`
// (control/others_job.h).
inline void ShutFiles(JobRecord* record) {
  record->dir.clear();
  record->logs.clear();
  record->spec.store.options.clear();
}

}  // namespace overcap
