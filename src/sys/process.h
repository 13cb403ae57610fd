// SPDX-License-Identifier: Apache-2.0
// Starting a program: argv only, no shell, as fast as vfork, and a failed exec comes back as an Error.
#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

enum class ProcessGroup {
  kInherit,  // stays in the caller's
  kGroup,    // leads a process group of its own
  kSession,  // leads a session of its own, without a terminal
};

struct SpawnRequest {
  std::vector<std::string>
      argv;             // byte for byte; argv[0] is looked up by ResolveProgram unless `program` is set
  std::string program;  // what is executed when it is already known (absolute, or relative to cwd)
  std::vector<std::string> env;  // NAME=VALUE, the whole environment of the program
  std::string cwd;               // empty: the caller's
  int stdin_fd = -1;             // -1: /dev/null; the caller keeps the descriptors it gives
  int stdout_fd = -1;
  int stderr_fd = -1;
  ProcessGroup group = ProcessGroup::kGroup;
  std::vector<int> cpus;                  // the processors it may use; empty: the caller's
  int parent_death_signal = 0;            // sent to it when the calling thread ends; 0: none
  std::vector<std::string> cgroup_procs;  // cgroup.procs files that it joins before it runs
  std::vector<int> blocked_signals;       // blocked when it starts: nothing sent early is lost or kills it
  bool default_signals =
      true;  // ignored signals are set to their default; false when the caller ignores none
  bool want_pidfd = false;
  int announce_fd = -1;     // takes its pid, as an int64_t, when it has its group and runs nothing yet, or it
                            // does not run; -1: nobody
  int umask = -1;           // -1: the caller's
  int64_t nofile_soft = 0;  // soft limit of open files, at most the hard one; 0: as file_limit.h says
};

struct Spawned {
  pid_t pid = -1;
  Fd pidfd;  // close-on-exec; only when asked for
};

// Returns after the program was executed (its first instruction may run already). No descriptor but 0, 1 and
// 2 reaches it. kNotFound and kDenied name the program or the folder; then no process is left. Not thread
// safe: the child borrows the caller's memory until exec.
Result<Spawned> Spawn(const SpawnRequest& request);

// The file that `argv0` stands for: with a '/' in it relative to `cwd`, else the first executable of that
// name in `path` (a PATH; its relative entries are relative to `cwd`). kNotFound: "command 'x' does not
// exist"; kDenied: it is there but cannot be executed.
Result<std::string> ResolveProgram(std::string_view argv0, std::string_view path, std::string_view cwd);

// The PATH in `env`, or the one that programs use when there is none.
std::string_view PathOf(const std::vector<std::string>& env);

// Sets every signal of this process to its default: what a program inherits as ignored, its children would
// too.
void SetDefaultSignals();

// Whoever ignores the ends of its children starts others who do, and these never learn how theirs ended: from
// now on this process does.
void HeedChildren();

// Takes the end of a child of ours, for which it waits so long; false: it had not ended, and was killed.
bool EndedWithin(pid_t child, int64_t timeout_us);

// How a process ended.
struct ProcessEnd {
  int exit_status = -1;  // its own; 128 + signal when it died by one
  int signal = 0;
  bool operator==(const ProcessEnd&) const = default;
  bool ok() const { return exit_status == 0; }
};
ProcessEnd ProcessEndOf(int wait_status);  // as wait4 gives it

}  // namespace overcap
