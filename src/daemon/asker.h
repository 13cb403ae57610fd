// SPDX-License-Identifier: Apache-2.0
// Who asks something of the engine, and what that one may do (docs/formats/system-engine.md). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "daemon/job.h"
#include "daemon/job_table.h"
#include "model/job_owner.h"
#include "model/policy/policy.h"

namespace overcap {

// The other end of a connection, as the kernel has it.
struct Asker {
  // The one user of an engine that serves one: everything is theirs, and jobs have no owner to be told.
  bool only_user = true;
  JobOwner owner;    // what its jobs run as; uid is who it is
  std::string user;  // the name
  std::string area;  // where its jobs stand

  bool root() const { return owner.uid == 0; }
};

// `policy`: nullptr where labs do not share.
bool IsAdmin(const Asker& asker, const Policy* policy);
bool Owns(const Asker& asker, const Job& job);
// Everything of the job, not its public row alone.
bool MaySee(const Asker& asker, const Job& job, const Policy* policy);
// kDenied, naming the job, when it may not. `verb`: "stopped", "held".
Result<void> CheckMayStop(const Asker& asker, const Job& job, const Policy* policy, std::string_view verb);
Result<void> CheckMayRemove(const Asker& asker, const Job& job);
Result<void> CheckMayRuleEngine(const Asker& asker, std::string_view what);

// The spec as the engine takes it: in the asker's own name, whatever it said. kDenied for what users may not
// ask for.
Result<JobSpec> StampSpec(JobSpec spec, const Asker& asker, const Policy* policy, const JobTable& table,
                          int64_t now_us);

// What others see of a job.
Job PublicJob(const Job& job);
JobRecord PublicRecord(const JobRecord& record);

}  // namespace overcap
