// SPDX-License-Identifier: Apache-2.0
#include "control/exec.h"

#include <cstdlib>

#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"

namespace overcap::cli {
namespace {

Result<int> Run(World& world, const Args& args) {
  std::vector<std::string> argv(args.words().begin() + 1, args.words().end());
  if (!argv.empty() && argv[0] == "--") argv.erase(argv.begin());
  if (argv.empty())
    return Fail(ErrorCode::kUsage, "there is no command to run", "overcap exec JOB -- CMD...");
  OC_TRY(records, QueryJobs(world, {args.words()[0]}));
  const char* terminal = std::getenv("TERM");
  OC_TRY(plan, PlanExec(records.front(), std::move(argv), terminal == nullptr ? "" : terminal));
  OC_TRY_VOID(world.out().Flush());
  return Fail(Become(plan));
}

}  // namespace

constinit const Command kExec = {
    .name = "exec",
    .summary = "run a command beside a running job, with its folder, environment and GPUs",
    .usage = "JOB -- CMD...",
    .min_words = 2,
    .takes_command = true,
    .run = Run,
    .job_words = true,
};

}  // namespace overcap::cli
