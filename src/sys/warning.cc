// SPDX-License-Identifier: Apache-2.0
#include "sys/warning.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

using Kind = WarnedProcess::Kind;

constexpr useconds_t kSecondLookUs = 5'000;

std::string_view FieldOf(std::string_view status, std::string_view name) {
  const std::string key = StrCat("\n", name, ":");
  const size_t at = status.starts_with(key.substr(1)) ? 0 : status.find(key);
  if (at == std::string_view::npos) return {};
  const size_t begin = status.find(':', at) + 1;
  return Trim(status.substr(begin, status.find('\n', begin) - begin));
}

uint64_t SignalsOf(std::string_view status, std::string_view name) {
  uint64_t mask = 0;
  for (const char c : FieldOf(status, name)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return 0;
    mask = mask << 4 | static_cast<uint64_t>(digit);
  }
  return mask;
}

bool Has(uint64_t mask, int signal) {
  return (mask >> (signal - 1) & 1) != 0;
}

bool IsShell(std::string_view name) {
  return name == "bash" || name == "sh" || name == "ksh" || name == "zsh" || name == "rbash";
}

// Overcap's own that wait for the warning with a signalfd.
constexpr std::string_view kLaunchWord = "launch", kHolderWord = "hold-allocation";

std::string OvercapWord(pid_t pid, std::string_view name) {
  if (!name.starts_with("overcap")) return {};
  const std::string words = PosixFiles().Read(StrCat("/proc/", pid, "/cmdline")).value_or("");
  const std::vector<std::string> argv = Split(words, '\0');
  return argv.size() > 1 ? argv[1] : "";
}

bool IsLauncher(std::string_view name) {
  static const std::set<std::string_view> launchers = {
      "srun",    "mpirun", "mpiexec", "mpiexec.hydra", "orterun",
      "prterun", "prte",   "prted",   "orted",         "hydra_pmi_proxy"};
  return launchers.contains(name);
}

std::vector<WarnedProcess> Look(const std::vector<pid_t>& own, const std::vector<pid_t>& elsewhere) {
  std::vector<WarnedProcess> seen;
  std::set<pid_t> known(own.begin(), own.end());
  const auto look = [&](pid_t pid, bool away) {
    const std::string status = StatusOfProcess(pid);
    const std::string_view name = FieldOf(status, "Name");
    const auto parent = static_cast<pid_t>(ParseInt(FieldOf(status, "PPid")).value_or(0));
    WarnedProcess process{pid, parent, Kind::kPlain, CatchesSignal(status, SIGUSR1), away};
    if (IsLauncher(name)) process.kind = Kind::kLauncher;
    if (Has(SignalsOf(status, "SigBlk"), SIGUSR1)) {  // before that it is deadly
      const std::string word = OvercapWord(pid, name);
      if (word == kLaunchWord) process.kind = Kind::kLaunch;
      process.catches = process.catches || word == kHolderWord;
    }
    seen.push_back(process);
  };
  for (const pid_t pid : own) look(pid, false);
  for (const pid_t pid : elsewhere) {
    if (!known.contains(pid) && pid != getpid()) look(pid, true);
  }
  return seen;
}

}  // namespace

bool CatchesSignal(std::string_view status, int signal, bool any_handler) {
  const uint64_t caught = SignalsOf(status, "SigCgt");
  if (!Has(caught, signal)) return false;
  return any_handler || !IsShell(FieldOf(status, "Name")) || !Has(caught, SIGILL);
}

bool IgnoresSignal(std::string_view status, int signal) {
  return Has(SignalsOf(status, "SigIgn"), signal);
}

std::string StatusOfProcess(pid_t pid) {
  return PosixFiles().Read(StrCat("/proc/", pid, "/status")).value_or("");
}

std::vector<pid_t> WhoIsWarned(const std::vector<WarnedProcess>& processes, bool many_nodes) {
  std::map<pid_t, const WarnedProcess*> by_pid;
  bool any = false, launcher = false;
  for (const WarnedProcess& process : processes) {
    by_pid[process.pid] = &process;
    any = any || (process.kind == Kind::kPlain && process.catches);
    launcher = launcher || (many_nodes && process.kind == Kind::kLauncher);
  }
  if (!any) return {};
  const auto passes_on = [&](const WarnedProcess& process) {
    return process.kind == Kind::kLaunch || (process.kind == Kind::kLauncher && many_nodes);
  };
  std::vector<pid_t> warned;
  for (const WarnedProcess& process : processes) {
    if (process.kind == Kind::kPlain ? !process.catches : !passes_on(process)) continue;
    bool left_to_another = process.kind == Kind::kPlain && process.elsewhere && launcher;
    size_t steps = 0;  // a pid reused while we looked cannot make a circle
    for (auto at = by_pid.find(process.parent); at != by_pid.end() && ++steps <= processes.size();
         at = by_pid.find(at->second->parent)) {
      left_to_another = left_to_another || passes_on(*at->second);
    }
    if (!left_to_another) warned.push_back(process.pid);
  }
  return warned;
}

int SendWarning(const std::vector<pid_t>& own, const std::vector<pid_t>& elsewhere, bool many_nodes) {
  const std::vector<pid_t> first = WhoIsWarned(Look(own, elsewhere), many_nodes);
  if (first.empty()) return 0;
  usleep(kSecondLookUs);
  int warned = 0;
  for (const pid_t pid : WhoIsWarned(Look(own, elsewhere), many_nodes)) {
    if (std::find(first.begin(), first.end(), pid) != first.end()) warned += kill(pid, SIGUSR1) == 0;
  }
  return warned;
}

bool SendWarningTo(pid_t pid) {
  return CatchesSignal(StatusOfProcess(pid), SIGUSR1, true) && kill(pid, SIGUSR1) == 0;
}

}  // namespace overcap
