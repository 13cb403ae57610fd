// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/session_command.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/slurm_time.h"

namespace overcap {
namespace {

constexpr int64_t kMib = 1 << 20;

void Add(const std::vector<std::string>& words, std::vector<std::string>* argv) {
  argv->insert(argv->end(), words.begin(), words.end());
}

void AddIf(std::string_view option, const std::string& value, std::vector<std::string>* argv) {
  if (!value.empty()) argv->push_back(StrCat(option, value));
}

Result<void> CheckNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool odd =
        std::any_of(name.begin(), name.end(), [](unsigned char c) { return c <= ' ' || c == 0x7F; });
    if (odd) return Fail(ErrorCode::kUsage, StrCat(Quoted(name), " is no name that Slurm has"));
  }
  return {};
}

}  // namespace

std::vector<std::string> SrunIntoJob(const AttachCommand& attach) {
  // The folder is left to the command: the current one may not exist there, and Slurm would complain.
  std::vector<std::string> argv = {"srun",        StrCat("--jobid=", attach.slurm_id),
                                   "--overlap",   "--nodes=1",
                                   "--ntasks=1",  "--quiet",
                                   "--mpi=none",  "--chdir=/",
                                   "--export=ALL"};
  AddIf("--nodelist=", attach.node, &argv);
  if (attach.terminal) argv.push_back("--pty");
  // Without it Slurm keeps what is written until a line ends.
  if (attach.stream) argv.push_back("--unbuffered");
  Add(attach.command, &argv);
  return argv;
}

bool IsSrunChatter(std::string_view line) {
  if (!line.starts_with("srun: ")) return false;
  constexpr std::string_view kTold[] = {": task 0: Exited with exit code ",
                                        ": task 0: Terminated",
                                        ": task 0: Killed",
                                        ": task 0: Hangup",
                                        ": task 0: Interrupt",
                                        "srun: Force Terminated ",
                                        "srun: Terminating StepId="};
  return std::any_of(std::begin(kTold), std::end(kTold),
                     [&](std::string_view told) { return line.find(told) != std::string_view::npos; });
}

std::string SessionComment(std::string_view id) {
  return StrCat("overcap-session:", id);
}

Result<std::vector<std::string>> SrunSession(const JobSpec& spec, const SbatchSettings& settings,
                                             const std::vector<std::string>& command, bool terminal) {
  const Resources& asked = spec.resources;
  std::vector<std::string> names = settings.partitions;
  names.insert(names.end(), {settings.account, settings.qos, settings.reservation, settings.constraint,
                             spec.placement.node});
  OC_TRY_VOID(CheckNames(names));
  OC_TRY_VOID(CheckSbatchArgs(settings.extra_args));
  OC_TRY(gpus, GpuOptions(asked, settings));
  // Overlapping, so that a `srun` typed in the session has resources to use.
  std::vector<std::string> argv = {"srun",       StrCat("--comment=", SessionComment(spec.id)),
                                   "--quiet",    "--overlap",
                                   "--nodes=1",  "--ntasks=1",
                                   "--mpi=none", "--export=ALL"};
  AddIf("--job-name=", spec.name, &argv);
  AddIf("--partition=", Join(settings.partitions, ","), &argv);
  AddIf("--account=", settings.account, &argv);
  AddIf("--qos=", settings.qos, &argv);
  AddIf("--reservation=", settings.reservation, &argv);
  AddIf("--nodelist=", spec.placement.node, &argv);
  if (asked.cpus > 0) argv.push_back(StrCat("--cpus-per-task=", asked.cpus));
  if (asked.mem_bytes > 0) argv.push_back(StrCat("--mem=", (asked.mem_bytes + kMib - 1) / kMib, "M"));
  if (asked.time_seconds > 0) argv.push_back(StrCat("--time=", FormatSlurmDuration(asked.time_seconds)));
  Add(gpus, &argv);
  Add(settings.extra_args, &argv);
  if (terminal) argv.push_back("--pty");
  Add(command, &argv);
  return argv;
}

}  // namespace overcap
