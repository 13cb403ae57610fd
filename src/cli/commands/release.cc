// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"

namespace overcap::cli {
namespace {

Result<int> Run(World& world, const Args& args) {
  OC_TRY(jobs, ResolveJobs(world, args.words()));
  OC_TRY_VOID(jobs.cluster->Release(jobs.ids));
  OC_TRY(records, jobs.cluster->Query(jobs.ids));
  if (world.out().json()) {
    PrintJobsJson(world, args.words(), records);
    return 0;
  }
  for (const JobRecord& record : records) {
    world.out().Note(StrCat(record.spec.id, "  ", StateText(record, world.clock().WallUs())));
  }
  return 0;
}

}  // namespace

constinit const Command kRelease = {
    .name = "release",
    .summary = "let held jobs start",
    .usage = "JOB...",
    .min_words = 1,
    .run = Run,
    .job_words = true,
};

}  // namespace overcap::cli
