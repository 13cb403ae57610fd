// SPDX-License-Identifier: Apache-2.0
#include "control/become_rank.h"

#include <algorithm>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text.h"
#include "launch/compose/launch_command.h"
#include "launch/foreign/launch_contact.h"
#include "launch/foreign/master_place.h"
#include "launch/foreign/rank_link.h"
#include "launch/rank_variables.h"
#include "sys/devices.h"
#include "sys/fd.h"
#include "sys/process.h"

namespace overcap {
namespace {

constexpr size_t kMostOfNodeFile = 4096;  // bytes; the first line is enough

// The first host of a PBS job: rank 0 is there unless the user chose otherwise.
std::string FirstPbsHost(const Variables& variables) {
  const std::string path(variables.Get("PBS_NODEFILE"));
  if (path.empty()) return "";
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.Get() < 0) return "";
  std::string text(kMostOfNodeFile, '\0');
  const ssize_t size = read(file.Get(), text.data(), text.size());
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return std::string(Trim(std::string_view(text).substr(0, text.find('\n'))));
}

// Ends this process as ranks end that are stopped: an exit status would look to the launcher like a failure
// of its own.
void EndAsStopped(const std::string& why) {
  dprintf(STDERR_FILENO, "overcap: %s\n", why.c_str());
  (void)signal(SIGTERM, SIG_DFL);
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  (void)sigprocmask(SIG_UNBLOCK, &term, nullptr);
  (void)raise(SIGTERM);
}

// Where the ranks meet. Under a launch also hands stdout and stderr to the node process of this host.
Result<MasterPlace> Join(const RankPlace& place, Variables* variables) {
  const MasterPlace guessed = MasterPlaceFrom(*variables, place, FirstPbsHost(*variables), getppid());
  if (!variables->Has(kContactVariable)) return guessed;
  const Result<RankLink> link = JoinNode(place, variables);
  if (!link && link.error().code == ErrorCode::kConflict) EndAsStopped(link.error().message);
  if (!link) return Fail(link.error());
  OC_TRY_VOID(UseLink(*link));
  if (!link->note.empty()) dprintf(STDERR_FILENO, "overcap: %s\n", link->note.c_str());
  if (link->master_addr.empty()) return guessed;
  return MasterPlace{link->master_addr, link->master_port};
}

// Of a job around the launcher that started us; torchrun calls a run without a name so.
TorchRun RunAround(const Variables& variables) {
  const auto number = [&](std::string_view name) {
    return static_cast<int>(std::clamp(ParseInt(variables.Get(name)).value_or(0), 0LL, 1'000'000LL));
  };
  const std::string_view id = variables.Get("TORCHELASTIC_RUN_ID");
  return {.id = std::string(id.empty() ? "none" : id),
          .restarts = number("TORCHELASTIC_RESTART_COUNT"),
          .max_restarts = number("TORCHELASTIC_MAX_RESTARTS")};
}

Result<void> TakePlace(Variables* variables) {
  auto place = RankPlaceFrom(*variables);
  if (!place && place.error().code != ErrorCode::kNotFound) return Fail(std::move(place).error());
  const RankPlace where = place ? *place : RankPlace();
  OC_TRY(master, Join(where, variables));
  const RankCpus cpus{static_cast<int>(AffinityCpus().size()), JobCpusHere(*variables, place.has_value())};
  const auto launched = TakeRun(variables);
  const std::string error_file(variables->Get("TORCHELASTIC_ERROR_FILE"));
  SetRankVariables({where, master.addr, master.port, cpus, launched.value_or(RunAround(*variables))},
                   variables);
  if (!launched && !error_file.empty()) variables->Set("TORCHELASTIC_ERROR_FILE", error_file);
  // What a launch started by this rank would take for its own.
  for (const char* name : {kPlanVariable, "OVERCAP_MASTER_ADDR", "OVERCAP_MASTER_PORT"})
    variables->Remove(name);
  return {};
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Error ExecError(int error, const std::string& command) {
  if (error == ENOEXEC) {
    return {ErrorCode::kDenied, StrCat("command '", command, "' is no program and has no '#!' line"),
            "begin the script with a line such as '#!/bin/sh'"};
  }
  if (error == ENOENT)
    return {ErrorCode::kNotFound, StrCat("command '", command, "': its interpreter does not exist"), ""};
  if (error == E2BIG)
    return {ErrorCode::kUsage, StrCat("command '", command, "': arguments and environment are too large"),
            ""};
  Error other = ErrnoError(error, StrCat("cannot execute '", command, "'"));
  other.code = ErrorCode::kDenied;
  return other;
}

Error Exec(const std::string& program, const std::vector<std::string>& command, const Variables& variables) {
  const std::vector<char*> argv = Pointers(command), env = Pointers(variables.entries());
  SetDefaultSignals();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(program.c_str(), argv.data(), env.data());
  return ExecError(errno, command[0]);
}

}  // namespace

Error BecomeRank(const std::vector<std::string>& command, const std::string& folder) {
  if (command.empty()) return {ErrorCode::kUsage, "no command was given", ""};
  Variables variables = Variables::OfThisProcess();
  if (auto placed = TakePlace(&variables); !placed) return std::move(placed).error();
  auto program = ResolveProgram(command[0], PathOf(variables.entries()), folder);
  if (!program) return std::move(program).error();
  return Exec(*program, command, variables);
}

}  // namespace overcap
