// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/detect.h"

#include <algorithm>

#include "base/text.h"
#include "launch/detect/found_job.h"
#include "launch/detect/gpu_count.h"
#include "launch/detect/host_name.h"
#include "launch/detect/pbs_job.h"
#include "launch/detect/slurm_job.h"
#include "launch/detect/started_by.h"

namespace overcap {
namespace {

Result<std::optional<SchedulerKind>> NamedScheduler(const Variables& variables) {
  const auto name = variables.Get("OVERCAP_SCHEDULER");
  if (name.empty()) return std::optional<SchedulerKind>();
  for (const auto scheduler :
       {SchedulerKind::kLocal, SchedulerKind::kSlurm, SchedulerKind::kPbs, SchedulerKind::kMpi}) {
    if (name == SchedulerName(scheduler)) return std::optional(scheduler);
  }
  return Fail(ErrorCode::kUsage, StrCat("OVERCAP_SCHEDULER is '", ToUtf8(name), "'"),
              "it may be slurm, pbs, local or mpi; unset it to have it detected");
}

// A kind of job and how to come by it.
struct Kind {
  SchedulerKind scheduler;
  std::optional<FoundJob> (*of_variables)(const DetectInputs&, std::vector<std::string>*);
  std::optional<FoundJob> (*find)(const DetectInputs&, std::vector<std::string>*, bool* reachable);
  bool (*is_set_up)(const DetectInputs&, const std::string& program);
  const char *status_program, *submit_program;
};
constexpr Kind kKinds[] = {
    // in the order in which they are asked
    {SchedulerKind::kPbs, PbsJobOfVariables, FindPbsJob, PbsIsSetUp, "qstat", "qsub"},
    {SchedulerKind::kSlurm, SlurmJobOfVariables, FindSlurmJob, IsWorthAskingSlurm, "squeue", "sbatch"},
};

struct Decision {
  SchedulerKind scheduler = SchedulerKind::kLocal;
  std::string reason = "no scheduler was found";
  std::optional<FoundJob> job;
};

// What the variables and the programs of the scheduler that the user named say.
Decision DecideNamed(SchedulerKind named, const DetectInputs& inputs, std::vector<std::string>* warnings) {
  Decision decision{named, "OVERCAP_SCHEDULER", std::nullopt};
  for (const Kind& kind : kKinds) {
    if (kind.scheduler != named) continue;
    decision.job = kind.of_variables(inputs, warnings);
    bool reachable = true;
    if (!decision.job) decision.job = kind.find(inputs, warnings, &reachable);
  }
  return decision;
}

// Without the job's variables, or with those of a job that is over: a scheduler that is set up is asked which
// of the user's jobs holds this host; without one this is a place to submit from.
std::optional<Decision> DecideByAsking(const DetectInputs& inputs, std::vector<std::string>* warnings) {
  std::optional<Decision> outside;
  for (const Kind& kind : kKinds) {
    const std::string status = inputs.programs.Find(kind.status_program);
    const std::string submit = inputs.programs.Find(kind.submit_program);
    const std::string& program = status.empty() ? submit : status;
    if (program.empty() || !kind.is_set_up(inputs, program)) continue;
    bool reachable = true;
    if (auto job = status.empty() ? std::nullopt : kind.find(inputs, warnings, &reachable)) {
      const std::string reason = job->reason;
      return Decision{kind.scheduler, reason, std::move(job)};
    }
    if (!outside && reachable && !submit.empty()) {
      outside = Decision{kind.scheduler, StrCat(kind.submit_program, " is on PATH"), std::nullopt};
    }
  }
  return outside;
}

Decision Decide(const DetectInputs& inputs, const std::string& mpi, std::vector<std::string>* warnings) {
  for (const Kind& kind : kKinds) {
    if (auto job = kind.of_variables(inputs, warnings)) {
      const std::string reason = job->reason;
      return {kind.scheduler, reason, std::move(job)};
    }
  }
  if (!mpi.empty()) return {SchedulerKind::kMpi, mpi, std::nullopt};
  if (auto decision = DecideByAsking(inputs, warnings)) return std::move(*decision);
  return {};
}

void TakeHosts(const DetectInputs& inputs, const Decision& decision, Allocation* allocation) {
  if (decision.job) {
    allocation->in_job = true;
    allocation->job_id = decision.job->id;
    allocation->reasons.job_id = decision.job->reason;
    allocation->hosts = decision.job->hosts;
    allocation->reasons.hosts = decision.job->hosts_reason;
    allocation->restored = decision.job->restored;
  } else {
    allocation->hosts = {{inputs.this_host, 0, -1}};
    allocation->reasons.hosts = "this machine";
  }
  if (!inputs.hostfile) return;
  // What the scheduler has said about a host's GPUs holds for it in a host file too.
  std::vector<AllocatedHost> chosen = *inputs.hostfile;
  for (AllocatedHost& host : chosen) {
    const auto known = std::ranges::find_if(
        allocation->hosts, [&](const AllocatedHost& other) { return SameHost(other.name, host.name); });
    if (known == allocation->hosts.end()) {
      if (decision.job) allocation->outside_job.push_back(host.name);
    } else if (host.gpus < 0) {
      host.gpus = known->gpus;
    }
  }
  allocation->hosts = std::move(chosen);
  allocation->reasons.hosts = StrCat("host file '", ToUtf8(inputs.hostfile_name), "'");
}

// The scheduler's number of tasks decides about the number of ranks where it was chosen: in PBS by mpiprocs,
// in Slurm by -n, but there a rank per GPU is what is meant where there are any.
void KeepSlots(const DetectInputs& inputs, Allocation* allocation) {
  if (inputs.hostfile) return;
  const bool any_gpus =
      std::ranges::any_of(allocation->hosts, [](const auto& host) { return host.gpus > 0; });
  const bool chosen = std::ranges::any_of(allocation->hosts, [](const auto& host) { return host.slots > 1; });
  const bool keep = allocation->scheduler == SchedulerKind::kPbs ? chosen : !any_gpus;
  for (AllocatedHost& host : allocation->hosts) {
    if (!keep) host.slots = 0;
    if (inputs.site_slots > 0 && (host.slots == 0 || !chosen)) host.slots = inputs.site_slots;
  }
}

void NameMachine(const DetectInputs& inputs, Allocation* allocation) {
  allocation->this_host = inputs.this_host;
  allocation->machine = inputs.site_name.empty() ? inputs.this_host : inputs.site_name;
  allocation->reasons.machine = inputs.site_name.empty() ? "host name" : inputs.site_reason;
}

}  // namespace

Result<Allocation> DetectAllocation(const DetectInputs& inputs) {
  OC_TRY(named, NamedScheduler(inputs.variables));
  Allocation allocation;
  const StartedBy started = StartedByLauncher(inputs.variables);
  const Decision decision = named ? DecideNamed(*named, inputs, &allocation.warnings)
                                  : Decide(inputs, started.variable, &allocation.warnings);
  allocation.scheduler = decision.scheduler;
  allocation.reasons.scheduler = decision.reason;
  if (started.of_several) allocation.started_by = started.variable;
  NameMachine(inputs, &allocation);
  TakeHosts(inputs, decision, &allocation);
  CountGpus(inputs, decision.job ? &*decision.job : nullptr, &allocation);
  KeepSlots(inputs, &allocation);
  return allocation;
}

}  // namespace overcap
