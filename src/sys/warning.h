// SPDX-License-Identifier: Apache-2.0
// The warning signal (USR1): the end is near. It goes to processes that handle it and to no other, because
// it ends a process that does not (docs/formats/job-folder.md, "The warning").
#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace overcap {

// What /proc/PID/status says about a signal. A shell with an EXIT trap catches every deadly signal for that
// trap and then dies of it: that is no handler, unless `any_handler`.
bool CatchesSignal(std::string_view status, int signal, bool any_handler = false);
bool IgnoresSignal(std::string_view status, int signal);
std::string StatusOfProcess(pid_t pid);  // empty: it has ended

struct WarnedProcess {
  enum class Kind {
    kPlain,
    kLaunch,    // `overcap launch`: warns its ranks by the same rule, on every host
    kLauncher,  // srun, mpiexec: passes the signal to all its ranks, also those that die of it
  };
  pid_t pid = 0, parent = 0;
  Kind kind = Kind::kPlain;
  bool catches = false;    // of kPlain
  bool elsewhere = false;  // not descended from the one that warns: a process of a job's step
};

// Which of these get the warning. Pure. `many_nodes`: ranks may run where they cannot be looked at, so their
// launcher gets it, provided that a process here handles it.
std::vector<pid_t> WhoIsWarned(const std::vector<WarnedProcess>& processes, bool many_nodes);

// Sends the warning to those of `own` (descendants of the caller) and `elsewhere` that WhoIsWarned() names;
// returns to how many. Looks twice, some milliseconds apart: a process that is about to start another program
// seems to have its parent's handlers.
int SendWarning(const std::vector<pid_t>& own, const std::vector<pid_t>& elsewhere, bool many_nodes);
// The same for one process alone, the shell of a batch script: any handler of its own will do.
bool SendWarningTo(pid_t pid);

}  // namespace overcap
