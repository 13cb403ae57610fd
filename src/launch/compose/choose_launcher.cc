// SPDX-License-Identifier: Apache-2.0
#include "launch/compose/choose_launcher.h"

#include "base/text.h"

namespace overcap {
namespace {

constexpr std::chrono::milliseconds kVersionDeadline(10'000);

// Asks the program itself what it is. kNotFound when it is not there or is none that we know.
Result<Launcher> Ask(const std::string& program, Programs& programs) {
  if (program.find('/') == std::string::npos && programs.Find(program).empty())
    return Fail(ErrorCode::kNotFound, StrCat("launcher '", program, "' is not installed here"),
                "'--launcher ssh' and '--launcher local' need no other program");
  OC_TRY(answer, programs.Run({program, "--version"}, kVersionDeadline));
  return LauncherOf(program, answer.output);
}

// What cannot be had, but was asked for, is the request's fault.
Result<Launcher> AskRequired(const std::string& program, const std::string& because, Programs& programs) {
  auto launcher = Ask(program, programs);
  if (!launcher &&
      (launcher.error().code == ErrorCode::kNotFound || launcher.error().code == ErrorCode::kDenied))
    launcher.error().code = ErrorCode::kUsage;
  if (launcher) launcher->reason = StrCat(because, "; ", launcher->reason);
  return launcher;
}

Launcher OwnLauncher(Flavour flavour, std::string reason) {
  return {flavour, "", 0, std::move(reason)};
}

// This machine by ourselves, others by ssh.
Launcher WithoutMpi(const ChoiceInputs& inputs, const std::string& why) {
  if (inputs.hosts == 1 && inputs.this_host_only)
    return OwnLauncher(Flavour::kLocal, why + "one host, this one");
  return OwnLauncher(Flavour::kSsh,
                     why + (inputs.hosts == 1 ? "another host" : StrCat(inputs.hosts, " hosts")));
}

// `word` is not "auto". `whose`: "asked for", "site file".
Result<Launcher> ByName(const std::string& word, const std::string& whose, const ChoiceInputs& inputs,
                        Programs& programs) {
  if (word == "ssh") return OwnLauncher(Flavour::kSsh, whose);
  if (word == "local") {
    if (inputs.hosts > 1 || !inputs.this_host_only) {
      return Fail(
          ErrorCode::kUsage,
          StrCat("launcher 'local' starts ranks on this machine only, but ",
                 inputs.hosts == 1 ? "another host is" : StrCat(inputs.hosts, " hosts are"), " to be used"),
          "leave --launcher out, or add '--nnodes 1'");
    }
    return OwnLauncher(Flavour::kLocal, whose);
  }
  const bool path = word.find('/') != std::string::npos;
  if (!path && word != "srun" && !word.starts_with("mpiexec") && !word.starts_with("mpirun")) {
    const std::string nearest = Nearest(word, {"auto", "srun", "mpiexec", "mpirun", "ssh", "local"});
    return Fail(ErrorCode::kUsage, StrCat("unknown launcher '", ToUtf8(word), "'"),
                nearest.empty() ? "one of: auto, srun, mpiexec, mpirun, ssh, local"
                                : StrCat("did you mean '", nearest, "'?"));
  }
  const bool of_site = !path && word == inputs.site_launcher && !inputs.site_program.empty();
  return AskRequired(of_site ? inputs.site_program : word, whose, programs);
}

// The first of mpiexec and mpirun that is one we know; kNotFound when none is.
Result<Launcher> AnyMpi(Programs& programs) {
  auto launcher = Ask("mpiexec", programs);
  if (launcher) return launcher;
  auto other = Ask("mpirun", programs);
  return other ? other : launcher;
}

Result<Launcher> Automatic(const ChoiceInputs& inputs, Programs& programs) {
  if (inputs.in_job && inputs.scheduler == SchedulerKind::kSlurm) {
    if (!programs.Find("srun").empty()) return AskRequired("srun", "Slurm job", programs);
    return WithoutMpi(inputs, "Slurm job, but srun is not installed here; ");
  }
  if (!inputs.in_job || inputs.scheduler != SchedulerKind::kPbs) return WithoutMpi(inputs, "");
  auto launcher = AnyMpi(programs);
  if (!launcher) return WithoutMpi(inputs, StrCat("PBS job, but ", launcher.error().message, "; "));
  launcher->reason = StrCat("PBS job; ", launcher->reason);
  return launcher;
}

}  // namespace

Result<Launcher> ChooseLauncher(const ChoiceInputs& inputs, Programs& programs) {
  if (!inputs.asked.empty() && inputs.asked != "auto")
    return ByName(inputs.asked, "asked for", inputs, programs);
  // A site's launcher is for its jobs: on a login node of the same machine there is nothing that it could
  // reach.
  if (inputs.in_job && !inputs.site_launcher.empty() && inputs.site_launcher != "auto")
    return ByName(inputs.site_launcher, "site file", inputs, programs);
  return Automatic(inputs, programs);
}

}  // namespace overcap
