// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "cli/commands/release_allocation.h"

namespace overcap::cli {
namespace {

Result<void> ReleaseJobs(World& world, const std::vector<std::string>& words) {
  OC_TRY(jobs, ResolveJobs(world, words, "release"));
  OC_TRY_VOID(jobs.cluster->Release(jobs.ids));
  OC_TRY(records, jobs.cluster->Query(jobs.ids));
  if (world.out().json()) {
    PrintJobsJson(world, words, records);
    return {};
  }
  for (const JobRecord& record : records) {
    world.out().Note(StrCat(record.spec.id, "  ", StateText(record, world.clock().WallUs())));
  }
  return {};
}

// A word that is the name of an allocation means that one; its job is never held, so nothing else can be
// meant.
Result<int> RunRelease(World& world, const Args& args) {
  OC_TRY(allocations, AllocationsOf(world));
  std::vector<std::string> jobs;
  for (const std::string& word : args.words()) {
    if (const auto held = FindAllocation(allocations, word)) {
      OC_TRY_VOID(ReleaseAllocation(world, allocations, *held));
    } else {
      jobs.push_back(word);
    }
  }
  if (!jobs.empty()) OC_TRY_VOID(ReleaseJobs(world, jobs));
  return 0;
}

}  // namespace

constinit const Command kRelease = {
    .name = "release",
    .summary = "let held jobs start; give an allocation back",
    .usage = "JOB|NAME...",
    .min_words = 1,
    .run = RunRelease,
    .job_words = true,
};

}  // namespace overcap::cli
