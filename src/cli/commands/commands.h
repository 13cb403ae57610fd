// SPDX-License-Identifier: Apache-2.0
// The commands, each defined in the .cc of its name; all_commands.cc puts them into the table.
#pragma once

#include "cli/command.h"

namespace overcap::cli {

extern const Command kSubmit;
extern const Command kLaunch;
extern const Command kLaunches;
extern const Command kRank;
extern const Command kEnv;
extern const Command kQuery;
extern const Command kLs;
extern const Command kLogs;
extern const Command kWait;
extern const Command kAbort;
extern const Command kResubmit;
extern const Command kHold;
extern const Command kRelease;
extern const Command kExec;
extern const Command kSsh;
extern const Command kShell;
extern const Command kAlloc;
extern const Command kAllocList;
extern const Command kAllocRelease;
extern const Command kAllocInstall;
extern const Command kAllocConnect;
extern const Command kRm;
extern const Command kGc;
extern const Command kInit;
extern const Command kUsage;
extern const Command kNodes;
extern const Command kWhy;

extern const Command kFanout;

extern const Command kWorkspaceCreate;
extern const Command kWorkspaceInit;
extern const Command kWorkspaceBackup;
extern const Command kWorkspaceRestore;
extern const Command kWorkspaceList;
extern const Command kWorkspaceStatus;
extern const Command kWorkspaceLs;
extern const Command kWorkspaceCat;
extern const Command kWorkspaceDiff;
extern const Command kWorkspaceVerify;
extern const Command kWorkspacePrune;
extern const Command kWorkspaceForget;
extern const Command kWorkspaceAuto;
extern const Command kWorkspaceExport;
extern const Command kWorkspaceImport;

extern const Command kPolicyCheck;
extern const Command kPolicyRender;
extern const Command kPolicyApply;
extern const Command kPolicySimulate;

extern const Command kStoreLs;
extern const Command kStoreCp;
extern const Command kStoreSync;
extern const Command kStoreRm;
extern const Command kStoreStat;
extern const Command kStoreUrl;
extern const Command kStoreDu;
extern const Command kStoreCheck;

extern const Command kClusterList;
extern const Command kClusterCheck;
extern const Command kConfigShow;
extern const Command kDoctor;
extern const Command kDaemonStatus;
extern const Command kDaemonStop;
extern const Command kCompletion;
extern const Command kShellInit;

}  // namespace overcap::cli
