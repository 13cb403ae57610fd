// SPDX-License-Identifier: Apache-2.0
#include "control/resubmit.h"

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "control/stored/stored_job.h"

namespace overcap::cli {
namespace {

constexpr Flag kResubmitFlags[] = {
    {"--gpus", "-n", "GPUS", "with so many GPUs, and ranks in proportion"},
    {"--dry-run", "", "", "print what would be sent, send nothing"},
};

Result<std::vector<SubmitPlan>> PlanAll(World& world, Cluster& cluster, const std::vector<JobRecord>& records,
                                        const Args& args) {
  std::optional<int> gpus;
  if (args.Has("--gpus")) {
    OC_TRY(count, args.GetInt("--gpus", 0, 0, 1'000'000));
    gpus = static_cast<int>(count);
  }
  std::vector<SubmitPlan> plans;
  for (const JobRecord& record : records) {
    OC_TRY_VOID(RightTo(world, cluster, record, JobVerb::kResubmit));
    OC_TRY(plan, PlanResubmit(cluster, record, gpus, world.clock(), world.random()));
    plans.push_back(std::move(plan));
  }
  return plans;
}

void PrintPlans(Output& out, const Args& args, const std::vector<SubmitPlan>& plans) {
  std::vector<std::string> specs;
  for (const SubmitPlan& plan : plans) {
    if (!out.json()) out.Write(plan.text);
    if (out.json()) specs.push_back(SpecToJson(plan.spec));
  }
  if (!out.json()) return;
  out.Json(args.words().size() == 1 ? specs.front() : StrCat("[", Join(specs, ",\n"), "]"));
}

Result<int> RunResubmit(World& world, const Args& args) {
  OC_TRY(jobs, ResolveJobs(world, args.words(), "resubmit"));
  OC_TRY(records, jobs.cluster->Query(jobs.ids));
  // All are checked before the first is sent.
  OC_TRY(plans, PlanAll(world, *jobs.cluster, records, args));
  Output& out = world.out();
  if (args.Has("--dry-run")) {
    PrintPlans(out, args, plans);
    return 0;
  }
  std::vector<JobRecord> submitted;
  std::vector<std::string> untold;  // with --json all ids are printed at the end
  for (const SubmitPlan& plan : plans) {
    OC_TRY_VOID(PutStoredSpec(plan.spec));
    OC_TRY(record, jobs.cluster->Submit(plan));
    untold.push_back(record.spec.id);
    out.MustTell(QueuedText(untold), StrCat("overcap query ", Join(untold, " ")));
    submitted.push_back(std::move(record));
    if (out.json()) continue;
    out.Line(untold.front());
    OC_TRY_VOID(out.Flush());
    untold.clear();
  }
  if (!out.json()) return 0;
  PrintJobsJson(world, args.words(), submitted);
  return 0;
}

}  // namespace

constinit const Command kResubmit = {
    .name = "resubmit",
    .summary = "run jobs again: same command, same code, bit for bit",
    .usage = "[-n GPUS] [--dry-run] JOB...",
    .flags = kResubmitFlags,
    .min_words = 1,
    .run = RunResubmit,
    .job_words = true,
};

}  // namespace overcap::cli
