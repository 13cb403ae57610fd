// SPDX-License-Identifier: Apache-2.0
// Who may touch what a job has beside its record: its folder, logs, store and environment. One rule for all
// verbs (docs/manual/system.md, "Other people's jobs").
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "control/config.h"
#include "model/job_record.h"

namespace overcap {

enum class JobVerb { kQuery, kTasks, kLogs, kEnter, kRemove, kResubmit };

enum class FilesRight {
  kOwn,         // the owner: this process opens them
  kAsOwner,     // a child process that has become the owner does (as_owner.h)
  kRecordOnly,  // what the cluster says is all; the files stay
  kRefused,
};

struct FilesCaller {
  bool owner = false;
  bool root = false;           // and the machine knows the owner, whom root can become
  bool shared_engine = false;  // one engine of root's serves all users of this machine
};

// Pure.
FilesRight RightToFiles(const FilesCaller& caller, JobVerb verb);

// Whether the record is of a job of another user: clusters leave its folder out of it
// (clusters/shut_files.h).
bool IsOthers(const JobRecord& record);

// Whether the cluster of that name has one engine for all users of this machine.
bool HasSharedEngine(const Config& config, const std::string& cluster);
// What a client without any configuration calls that cluster.
std::string ImpliedNameOf(const Config& config, const std::string& cluster);
// How such a client finds the engine where it is not at its usual place: NAME=VALUE.
std::vector<std::string> EngineVariables(const Config& config, const std::string& cluster);

// The same for this process and that job; kDenied, with what to type, where it is refused.
Result<FilesRight> RightToFilesOf(const JobRecord& record, bool shared_engine, JobVerb verb);

// kDenied for a job of another user: what opens a job's files in this process asks it once more.
Result<void> CheckNotOthers(const JobRecord& record);

}  // namespace overcap
