// SPDX-License-Identifier: Apache-2.0
#include "control/job_exit_status.h"

#include <cstring>

#include "base/text.h"

namespace overcap {

int JobExitStatus(const JobRecord& record) {
  switch (record.state) {
    case JobState::kSucceeded:
      return 0;
    case JobState::kCancelled:
      return kStatusCancelled;
    case JobState::kLost:
      return kStatusLost;
    default:
      return record.exit_status > 0 ? record.exit_status : 1;
  }
}

int JobsExitStatus(const std::vector<JobRecord>& records) {
  for (const JobRecord& record : records) {
    if (const int status = JobExitStatus(record); status != 0) return status;
  }
  return 0;
}

std::string EndingText(const JobRecord& record) {
  if (record.signal > 0) {
    const char* name = sigabbrev_np(record.signal);
    return StrCat("signal ", record.signal, name == nullptr ? "" : StrCat(" (SIG", name, ")"));
  }
  return record.exit_status < 0 ? "" : StrCat("exit status ", record.exit_status);
}

}  // namespace overcap
