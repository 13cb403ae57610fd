// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"
#include "cli/commands/person_words.h"

namespace overcap::cli {
namespace {

Result<int> RunExec(World& world, const Args& args) {
  OC_TRY(words, ReadBesideWords(args));
  if (words.command.empty())
    return Fail(ErrorCode::kUsage, "there is no command to run", "overcap exec JOB -- CMD...");
  return RunBeside(world, "exec", words);
}

}  // namespace

constinit const Command kExec = {
    .name = "exec",
    .summary = "run a command beside a running job, with its folder, environment and GPUs",
    .usage = "JOB [-w NODE] -- CMD...",
    .flags = kBesideFlags,
    .min_words = 2,
    .takes_command = true,
    .run = RunExec,
    .job_words = true,
};

}  // namespace overcap::cli
