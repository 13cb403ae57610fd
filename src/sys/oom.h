// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace overcap {

// How many processes the kernel has killed on this machine for want of memory since the boot, in control
// groups too; -1 where it does not tell. A process that died by SIGKILL while this grew was probably one.
int64_t KernelOomKills();

}  // namespace overcap
