// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_backup.h"

#include "cli/commands/commands.h"
#include "cli/commands/store_words.h"
#include "cli/commands/workspace_words.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceBackupFlags[] = {
    {"--message", "-m", "TEXT", "words to go with the snapshot"},
    {"--read-all", "", "", "read every file again, also those that did not change"},
};

Result<int> RunWorkspaceBackup(World& world, const Args& args) {
  OC_TRY(opened, OpenWorkspaceHere(world, args.words().empty() ? "" : args.words()[0]));
  const StopSignals signals;
  const StopGrace grace(signals, StoppedLate(world));
  ProgressMeter meter(world.out(), world.clock());
  WorkspaceBackupOptions options;
  options.message = args.Get("--message");
  options.read_all = args.Has("--read-all");
  options.progress = ShowBackup(&meter);
  options.stop = signals.flag();
  const auto backup = BackUpWorkspace(opened.workspaces, opened.found, opened.repository, options);
  if (!backup) {
    return EndFailed(world, signals, backup.error(),
                     "stopped; no snapshot was made, what is stored already serves the next backup");
  }
  return TellBackup(world, opened.found, *backup, meter.ElapsedUs());
}

}  // namespace

constinit const Command kWorkspaceBackup = {
    .name = "workspace backup",
    .summary = "save a workspace now; only what changed is read and stored",
    .usage = "[NAME] [-m TEXT] [--read-all]",
    .flags = kWorkspaceBackupFlags,
    .max_words = 1,
    .run = RunWorkspaceBackup,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
