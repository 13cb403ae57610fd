// SPDX-License-Identifier: Apache-2.0
#include "sys/inherited_children.h"

#include <algorithm>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "sys/proc_table.h"

namespace overcap {

std::function<bool(pid_t)> InheritedChildren() {
  siginfo_t any{};
  if (waitid(P_ALL, 0, &any, WEXITED | WNOHANG | WNOWAIT) != 0) return {};  // the usual case costs nothing
  std::vector<ProcessIdentity> children;
  for (const pid_t pid : ChildrenOf(getpid())) {
    if (auto identity = Identify(pid)) children.push_back(std::move(*identity));
  }
  if (children.empty()) return {};
  return [children = std::move(children)](pid_t pid) {
    const auto identity = Identify(pid);
    return identity && std::find(children.begin(), children.end(), *identity) != children.end();
  };
}

}  // namespace overcap
