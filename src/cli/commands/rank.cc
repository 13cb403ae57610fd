// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/rank.h"

#include "cli/commands/commands.h"
#include "cli/world.h"
#include "control/become_rank.h"

namespace overcap::cli {
namespace {

constexpr int kNotExecutable = 126, kNoSuchCommand = 127;

Result<int> RunRank(World& world, const Args& args) {
  const auto folder = world.Folder();
  return BecomeRank(args.words(), folder ? *folder : "");
}

}  // namespace

Result<int> BecomeRank(const std::vector<std::string>& command, const std::string& folder) {
  const Error error = overcap::BecomeRank(command, folder);
  Output out(stdout, stderr, DetectTerminal());
  return CommandProblem(error, &out);
}

Result<int> CommandProblem(const Error& error, Output* out) {
  if (error.code != ErrorCode::kNotFound && error.code != ErrorCode::kDenied) return Fail(error);
  out->PrintError(error);
  return error.code == ErrorCode::kNotFound ? kNoSuchCommand : kNotExecutable;
}

constinit const Command kRank = {
    .name = "rank",
    .summary = "become a command as the rank that srun or mpiexec made of this process",
    .usage = "-- CMD...",
    .min_words = 1,
    .takes_command = true,
    .run = RunRank,
    .without_config = true,
};

}  // namespace overcap::cli
