// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "control/gc.h"

namespace overcap::cli {
namespace {

Result<int> RunRm(World& world, const Args& args) {
  OC_TRY(jobs, ResolveJobs(world, args.words(), "rm"));
  OC_TRY_VOID(RemoveJobs(*jobs.cluster, jobs.ids));
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
