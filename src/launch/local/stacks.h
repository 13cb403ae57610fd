// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace overcap {

// Where a process is right now, for people: what py-spy says of a Python where there is a py-spy, else what
// the kernel tells of its threads and of its children. Valid UTF-8, at most 64 KiB, never empty. Waits no
// longer than until `deadline_us` (monotonic). Starts processes; reaps only those.
std::string CollectStack(pid_t pid, int64_t deadline_us);
// The same for many at once, in their order.
std::vector<std::string> CollectStacks(const std::vector<pid_t>& pids, int64_t deadline_us);

}  // namespace overcap
