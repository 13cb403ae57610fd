// SPDX-License-Identifier: Apache-2.0
// Who runs on this machine, from /proc. Processes come and go while it is read: what has vanished is left
// out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace overcap {

// Names one process for ever: pids are reused, and start ticks count from the boot.
struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  std::string boot_id;
  bool operator==(const ProcessIdentity&) const = default;
};

// This boot of the machine, /proc/sys/kernel/random/boot_id; empty where the kernel does not tell.
const std::string& BootId();

std::optional<ProcessIdentity> Identify(pid_t pid);  // nullopt: no such process, or it has ended
bool IsAlive(const ProcessIdentity& identity);       // a zombie has ended

// One row of /proc/PID/stat.
struct ProcessRow {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';
  uint64_t start_ticks = 0;
};
// The command in it may hold blanks and ')'. nullopt for anything cut off.
std::optional<ProcessRow> ParseProcessRow(std::string_view stat);

// All descendants of `pid` that have not ended, parents before children. Those that have lost their parent
// are found only if `pid` is their subreaper.
std::vector<pid_t> ChildrenOf(pid_t pid);
// The same by a way that costs by the family's size, not the machine's, where the kernel has it. Some may be
// missing while others end, and some may have ended: for a look at them, not for ending them.
std::vector<pid_t> LikelyChildrenOf(pid_t pid);

// Processes of this user that were started with exactly this NAME=VALUE in their environment and have not
// ended. One that is just starting a program is waited for, since its environment cannot be seen meanwhile.
std::vector<pid_t> ProcessesWithEnvironment(std::string_view entry);

// Whether one of these processes has one of the files open that `files` are open on here.
bool HaveOpen(const std::vector<pid_t>& pids, const std::vector<int>& files);

// Memory of these processes. Resident is cheap and counts what they share once for each: a bound from above.
// Proportional counts shared memory once (Pss), costs milliseconds for big processes, and falls back to
// resident where the kernel does not tell.
int64_t ResidentBytes(const std::vector<pid_t>& pids);
int64_t ProportionalBytes(const std::vector<pid_t>& pids);

}  // namespace overcap
