// SPDX-License-Identifier: Apache-2.0
#include "cli/all_commands.h"

#include "cli/commands/commands.h"

namespace overcap::cli {
namespace {

constexpr const Command* kCommands[] = {
    &kSubmit, &kLaunch,     &kLaunches, &kRank,         &kEnv,        &kQuery,      &kLs,        &kLogs,
    &kWait,   &kAbort,      &kResubmit, &kHold,         &kRelease,    &kExec,       &kRm,        &kGc,
    &kInit,   &kConfigShow, &kDoctor,   &kDaemonStatus, &kDaemonStop, &kCompletion, &kShellInit,
    &kUsage,  &kNodes,      &kWhy,
};

}  // namespace

std::span<const Command* const> AllCommands() {
  return kCommands;
}

}  // namespace overcap::cli
