// SPDX-License-Identifier: Apache-2.0
// What the commands of workspaces share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/progress_meter.h"
#include "cli/world.h"
#include "control/stop_signals.h"
#include "control/workspace_backup.h"
#include "control/workspace_open.h"
#include "control/workspace_restore.h"

namespace overcap::cli {

// The chosen cluster's folder first, then those of all others.
Result<WorkspaceWorld> WorkspacesOf(World& world);

inline constexpr Flag kWorkspaceNameFlag = {"--name", "", "NAME",
                                            "which workspace; by default that of the current folder"};

struct OpenedWorkspace {
  WorkspaceWorld workspaces;
  FoundWorkspace found;
  Repository repository;
};
// By name ("": the one here), wherever its folder is.
Result<OpenedWorkspace> OpenWorkspace(World& world, std::string_view name);
// The same; its folder must be here and whole.
Result<OpenedWorkspace> OpenWorkspaceHere(World& world, std::string_view name);

// A path that the user typed, from the current folder, as one that can be kept: absolute, without "..".
// `~` and variables stay.
Result<std::string> TypedFolder(World& world, std::string_view typed);

// The same for a store: locations with a scheme and names of the configuration stay as they are.
Result<std::string> TypedStore(World& world, std::string_view typed);

// "3h ago", "just now".
std::string Ago(int64_t then_us, int64_t now_us);
// "ab12cd34ef of 3h ago"
std::string SnapshotWords(const NamedSnapshot& snapshot, int64_t now_us);

// Functions to hand to the engine.
std::function<void(const BackupProgress&)> ShowBackup(ProgressMeter* meter);
std::function<void(const RestoreProgress&)> ShowRestore(ProgressMeter* meter);

// Tells what could not be saved, each on stderr or as an event. True when something is missing: status 3.
bool TellBackupProblems(World& world, const BackupReport& report);
bool TellRestoreProblems(World& world, const RestoreReport& report);

// How a command ends that failed: with the error, or, when a signal has asked for it, with one line and
// 128 + signal.
Result<int> EndFailed(World& world, const StopSignals& signals, Error error, std::string_view when_stopped);

// What `create` and `backup` say of a snapshot that was taken, or that nothing changed. The exit status.
int TellBackup(World& world, const FoundWorkspace& found, const WorkspaceBackup& backup, int64_t took_us);
// What `init` and `restore` say of files that came back. The exit status.
int TellRestore(World& world, std::string_view folder, const NamedSnapshot& snapshot,
                const RestoreReport& report, int64_t took_us);

constexpr int kSomeFilesMissing = 3;

}  // namespace overcap::cli
