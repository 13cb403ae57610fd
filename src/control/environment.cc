// SPDX-License-Identifier: Apache-2.0
#include "control/environment.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "control/detect_here.h"
#include "launch/detect/gpu_probe.h"
#include "launch/detect/host_name.h"
#include "launch/detect/pbs_job.h"
#include "launch/detect/slurm_job.h"
#include "launch/rank_variables.h"
#include "model/host_list.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

// Schedulers often count GPUs without naming them; then the drivers of this host do, if it is one of them.
void NameGpus(const LaunchWorld& world, Allocation* allocation) {
  const bool here = std::ranges::any_of(allocation->hosts, [&](const AllocatedHost& host) {
    return host.gpus > 0 && SameHost(host.name, allocation->this_host);
  });
  if (!here || !allocation->gpu_type.empty()) return;
  RealPrograms programs(world.variables);
  const ProbedGpus probed = ProbeGpus(programs);
  allocation->gpu_type = probed.type;
  allocation->reasons.gpu_type = probed.type.empty() ? "" : probed.how;
}

std::string WhySoManyRanks(const Allocation& allocation) {
  const auto any = [&](int AllocatedHost::*count) {
    return std::ranges::any_of(allocation.hosts, [&](const auto& host) { return host.*count > 0; });
  };
  if (any(&AllocatedHost::slots)) return "slots of the hosts";
  return any(&AllocatedHost::gpus) ? "one rank per GPU" : "one rank per host";
}

void TakePlan(const PreparedLaunch& prepared, const Variables& variables, EnvironmentReport* report) {
  report->launcher_reason = prepared.launcher.reason;
  report->launch_command = prepared.command.argv;
  if (prepared.allocation.started_by.empty()) {
    report->launcher = FlavourName(prepared.launcher.flavour);
    report->world_size = prepared.plan.world_size;
    report->world_size_reason = WhySoManyRanks(prepared.allocation);
    return;
  }
  report->launcher_reason = StrCat("this process is already a rank (", prepared.allocation.started_by,
                                   "): a launch runs the command in it");
  if (const auto place = RankPlaceFrom(variables)) {
    report->world_size = place->world_size;
    report->world_size_reason = place->from;
  }
}

JobLife LifeOf(const SavedEnvironment& saved, Programs& programs) {
  if (saved.job_id.empty()) return JobLife::kLives;
  if (saved.scheduler == SchedulerName(SchedulerKind::kSlurm)) return AskSlurmLife(programs, saved.job_id);
  if (saved.scheduler == SchedulerName(SchedulerKind::kPbs)) return AskPbsLife(programs, saved.job_id);
  return JobLife::kNotTold;
}

}  // namespace

Result<EnvironmentReport> DescribeEnvironment(const LaunchWorld& world) {
  LaunchOptions options;
  options.command = {"CMD..."};
  EnvironmentReport report;
  if (auto prepared = PrepareLaunch(options, world)) {
    TakePlan(*prepared, world.variables, &report);
    report.allocation = std::move(prepared->allocation);
  } else {
    const std::string problem = prepared.error().message;
    OC_TRY(here, DetectHere(world, ""));
    report.allocation = std::move(here.allocation);
    report.launcher_reason = problem;
  }
  NameGpus(world, &report.allocation);
  report.job_variables = JobVariables(world.variables, report.allocation);
  report.facts = FactsOf(report.allocation, report.world_size);
  return report;
}

std::string GpusPerHostText(const Allocation& allocation) {
  std::map<int, std::vector<std::string>, std::greater<>> hosts;
  for (const AllocatedHost& host : allocation.hosts) hosts[host.gpus].push_back(host.name);
  if (hosts.size() == 1) return StrCat(hosts.begin()->first);
  std::vector<std::string> parts;
  for (const auto& [gpus, names] : hosts) parts.push_back(StrCat(CompressHostList(names), ": ", gpus));
  return Join(parts, ", ");
}

Result<std::string> SaveReport(const EnvironmentReport& report, const std::string& root) {
  NamedValues values = report.job_variables;
  values.insert(values.end(), report.facts.begin(), report.facts.end());
  PosixFiles files;
  return SaveEnvironment(root, SavedName(report.allocation), values, files);
}

Result<LoadedEnvironment> LoadReport(const std::string& root, std::string_view job,
                                     const Variables& variables) {
  OC_TRY(saved, LoadEnvironment(root, job, PosixFiles()));
  RealPrograms programs(variables);
  const JobLife life = LifeOf(saved, programs);
  if (life == JobLife::kOver) {
    return Fail(ErrorCode::kConflict, StrCat("the saved job '", saved.name, "' is over"),
                "overcap env --save, in a shell of the job that you mean");
  }
  LoadedEnvironment loaded{std::move(saved), ""};
  if (life == JobLife::kNotTold) {
    loaded.warning = StrCat("cannot tell whether the saved job '", loaded.saved.name, "' still runs");
  }
  return loaded;
}

}  // namespace overcap
