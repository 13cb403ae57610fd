// SPDX-License-Identifier: Apache-2.0
#include "control/hidden_commands.h"

#include "control/as_owner.h"
#include "control/enter.h"
#include "control/fanout/fanout_node.h"
#include "control/hold_allocation.h"
#include "control/mounts/keep_mounts.h"
#include "control/script_step.h"
#include "control/sshd_session.h"

namespace overcap {

HiddenCommand FindHiddenCommand(const std::vector<std::string>& words) {
  if (words.empty()) return nullptr;
  if (words[0] == "as-owner") return RunAsOwnerStep;
  if (words[0] == "enter") return RunEnter;
  if (words[0] == "enter-sshd") return RunEnterSshd;
  if (words[0] == "hold-allocation") return RunHoldAllocation;
  if (words.size() > 1 && words[0] == "agent" && words[1] == "mounts") return RunMountsKeeper;
  if (words[0] == "fanout-node") return RunFanoutNode;
  if (words[0] == "script-task") return RunScriptTask;
  return nullptr;
}

}  // namespace overcap
