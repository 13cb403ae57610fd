// SPDX-License-Identifier: Apache-2.0
// What is mounted where, and how that ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

// The mount points of a /proc/self/mountinfo that are `folder` or below it, the deepest first. Pure.
std::vector<std::string> MountPointsIn(std::string_view mountinfo, const std::string& folder);

// The same of this machine. kInternal when the kernel does not tell: then nothing may be taken for gone.
Result<std::vector<std::string>> MountsBelow(const std::string& folder);

// Whether this node can take mounts away: root, or there is a fusermount on `path`.
bool CanUnmount(std::string_view path);
// Takes a mount away; `lazy`: also when it is in use or its mounter does not answer.
Result<void> Unmount(const std::string& point, bool lazy, const std::vector<std::string>& env);

// Removes a folder with all below it unless anything is mounted there: kConflict.
Result<void> RemoveUnmounted(const std::string& folder);

}  // namespace overcap
