// SPDX-License-Identifier: Apache-2.0
// What the commands that take job ids share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/world.h"
#include "control/as_owner.h"
#include "control/open_cluster.h"
#include "control/others_job.h"

namespace overcap::cli {

// The jobs that a command was given.
struct NamedJobs {
  Cluster* cluster = nullptr;
  std::vector<std::string> ids;
};
// `verb`: of a command that stops, removes, holds or repeats jobs. It refuses the end of an id with less than
// four characters, which is soon typed by mistake; whole ids, `last` and the cluster's own numbers may be
// shorter.
Result<NamedJobs> ResolveJobs(World& world, const std::vector<std::string>& refs, std::string_view verb = {});
// The same; with --from LOCATION those of that store, which `stored` then holds.
Result<NamedJobs> JobsFrom(World& world, const Args& args, std::unique_ptr<Cluster>* stored);
inline constexpr Flag kFromFlag = {"--from", "", "LOCATION",
                                   "of a job in that store, without asking its cluster"};
Result<std::vector<JobRecord>> QueryJobs(World& world, const std::vector<std::string>& refs);

// What this process may do with the files of that job: the one rule of control/others_job.h.
Result<FilesRight> RightTo(const World& world, const Cluster& cluster, const JobRecord& record, JobVerb verb);
// What the job's owner would type: the verb with the flags of this command, then `words`.
OwnersRun OwnersCommand(const World& world, const Cluster& cluster, const JobRecord& record,
                        std::string_view verb, const Args& args, const std::vector<std::string>& words);
// Runs that to its end, after what this process has printed.
Result<OwnersRunEnd> RunOwnersCommand(World& world, const OwnersRun& run);

// What `--json` says of jobs: an object when one was named, else an array (docs/formats/api.md).
void PrintJobsJson(World& world, const std::vector<std::string>& refs, const std::vector<JobRecord>& records);
void PrintRecordJson(World& world, const JobRecord& record);
std::string RecordsJson(const World& world, const std::vector<JobRecord>& records);

// "running for 3m20s", "failed, exit status 3, after 20s (rank 1)": one line for people.
std::string StateText(const JobRecord& record, int64_t now_us);
// "job 'x' queued (waits for 1 GPU)", "..., 37/41 tasks": while somebody waits for it.
std::string WaitingText(const JobRecord& record, int64_t now_us);
// The command on one line that is short enough for tables.
std::string CommandText(const std::vector<std::string>& command);
Style StateStyle(JobState state);

// "the job is queued as ID": for Output::MustTell().
std::string QueuedText(const std::vector<std::string>& ids);

// Makes Ctrl-C end this program at once, with status 130 and `hint` on stderr: the job goes on without us.
void DetachOnInterrupt(const std::string& hint);

}  // namespace overcap::cli
