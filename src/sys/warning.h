// SPDX-License-Identifier: Apache-2.0
// The warning signal (USR1): the job will be stopped soon. Only processes that handle it get it, because any
// other would die of it (docs/formats/job-folder.md, "The warning").
#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace overcap {

// What /proc/PID/status says about a signal. A shell with an EXIT trap catches every deadly signal to run
// that trap, and then dies of the signal: this does not count as a handler unless `any_handler`.
bool CatchesSignal(std::string_view status, int signal, bool any_handler = false);
bool IgnoresSignal(std::string_view status, int signal);
std::string StatusOfProcess(pid_t pid);  // empty: it has ended

struct WarnedProcess {
  enum class Kind {
    kPlain,
    kLaunch,    // `overcap launch`: warns its own ranks by the same rule, on every host
    kLauncher,  // srun, mpiexec: pass the signal on to all their ranks, also to those that die of it
  };
  pid_t pid = 0, parent = 0;
  Kind kind = Kind::kPlain;
  bool catches = false;    // of kPlain
  bool elsewhere = false;  // no descendant of the process that warns, but of a step of the job
};

// Which of these get the warning. Pure. `many_nodes`: ranks may run on other hosts, where they cannot be
// checked, so their launcher gets it, provided that a process on this host handles it.
std::vector<pid_t> WhoIsWarned(const std::vector<WarnedProcess>& processes, bool many_nodes);

// Sends the warning to those of `own` (descendants of the caller) and `elsewhere` that WhoIsWarned() names
// and returns their number. Looks twice, some milliseconds apart, because a process between fork and exec
// seems to have its parent's handlers.
int SendWarning(const std::vector<pid_t>& own, const std::vector<pid_t>& elsewhere, bool many_nodes);
// The same for a single process, the shell of a batch script, where any handler counts.
bool SendWarningTo(pid_t pid);

}  // namespace overcap
