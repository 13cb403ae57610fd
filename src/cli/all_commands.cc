// SPDX-License-Identifier: Apache-2.0
#include "cli/all_commands.h"

#include "cli/commands/commands.h"

namespace overcap::cli {
namespace {

// One line each.
// clang-format off
constexpr const Command* kCommands[] = {
    &kSubmit,
    &kLaunch,
    &kLaunches,
    &kRank,
    &kEnv,
    &kQuery,
    &kLs,
    &kLogs,
    &kWait,
    &kAbort,
    &kResubmit,
    &kHold,
    &kRelease,
    &kExec,
    &kSsh,
    &kShell,
    &kAlloc,
    &kAllocList,
    &kAllocRelease,
    &kAllocInstall,
    &kAllocConnect,
    &kRm,
    &kGc,
    &kInit,
    &kFanout,
    &kWorkspaceCreate,
    &kWorkspaceInit,
    &kWorkspaceBackup,
    &kWorkspaceRestore,
    &kWorkspaceList,
    &kWorkspaceStatus,
    &kWorkspaceLs,
    &kWorkspaceCat,
    &kWorkspaceDiff,
    &kWorkspaceVerify,
    &kWorkspacePrune,
    &kWorkspaceForget,
    &kWorkspaceAuto,
    &kWorkspaceExport,
    &kWorkspaceImport,
    &kStoreLs,
    &kStoreCp,
    &kStoreSync,
    &kStoreRm,
    &kStoreStat,
    &kStoreUrl,
    &kStoreDu,
    &kStoreCheck,
    &kUsage,
    &kNodes,
    &kWhy,
    &kPolicyCheck,
    &kPolicyRender,
    &kPolicyApply,
    &kPolicySimulate,
    &kClusterList,
    &kClusterCheck,
    &kConfigShow,
    &kDoctor,
    &kDaemonStatus,
    &kDaemonStop,
    &kCompletion,
    &kShellInit,
};
// clang-format on

}  // namespace

std::span<const Command* const> AllCommands() {
  return kCommands;
}

}  // namespace overcap::cli
