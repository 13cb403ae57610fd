// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "control/gc.h"

namespace overcap::cli {
namespace {

// The jobs of one owner after the other: files are removed by nobody else.
Result<int> RemoveAsOwners(World& world, const Args& args, Cluster& cluster,
                           const std::vector<JobRecord>& records) {
  std::map<std::string, std::vector<std::string>> ids;
  std::map<std::string, JobRecord> any;
  for (const JobRecord& record : records) {
    ids[record.spec.user].push_back(record.spec.id);
    any.emplace(record.spec.user, record);
  }
  for (const auto& [user, of_user] : ids) {
    OwnersRun run = OwnersCommand(world, cluster, any.at(user), "rm", args, of_user);
    run.clean = run.capture = true;
    OC_TRY(end, RunOwnersCommand(world, run));
    if (end.exit_status != 0) return end.exit_status;
  }
  return 0;
}

// What an administrator cannot remove, and who can.
void TellWhatStays(World& world, const JobRecord& record) {
  if (record.spec.store.empty()) return;
  world.out().Warn(StrCat(
      "job '", record.spec.id, "' is forgotten; its logs in ", Quoted(record.spec.store.at, 200),
      " stay: user '", record.spec.user, "' removes them with  ",
      ShellJoin({"overcap", "store", "rm", "-r", StrCat(record.spec.store.at, "/jobs/", record.spec.id)})));
}

Result<int> RunRm(World& world, const Args& args) {
  OC_TRY(jobs, ResolveJobs(world, args.words(), "rm"));
  OC_TRY(records, QueryInParts(*jobs.cluster, jobs.ids));
  std::vector<JobRecord> as_owner, of_record;
  std::vector<std::string> here;
  for (const JobRecord& record : records) {
    OC_TRY(right, RightTo(world, *jobs.cluster, record, JobVerb::kRemove));
    if (right == FilesRight::kRecordOnly) of_record.push_back(record);
    if (right == FilesRight::kAsOwner) {
      as_owner.push_back(record);
    } else {
      here.push_back(record.spec.id);
    }
  }
  for (const JobRecord& record : as_owner) {  // nothing is removed when one has not ended
    if (!IsFinal(record.state)) OC_TRY_VOID(jobs.cluster->Remove({record.spec.id}));
  }
  OC_TRY_VOID(RemoveJobs(*jobs.cluster, here));
  OC_TRY(status, RemoveAsOwners(world, args, *jobs.cluster, as_owner));
  if (status != 0) return status;
  for (const JobRecord& record : of_record) TellWhatStays(world, record);
  if (world.out().json()) {
    world.out().Json(JsonWriter().BeginObject().Field("removed", jobs.ids).EndObject().Text());
    return 0;
  }
  for (const std::string& id : jobs.ids) world.out().Note(StrCat("removed ", id));
  return 0;
}

}  // namespace

constinit const Command kRm = {
    .name = "rm",
    .summary = "forget ended jobs and remove their folders",
    .usage = "JOB...",
    .min_words = 1,
    .run = RunRm,
    .job_words = true,
};

}  // namespace overcap::cli
