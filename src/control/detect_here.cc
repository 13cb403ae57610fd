// SPDX-License-Identifier: Apache-2.0
#include "control/detect_here.h"

#include "control/config.h"
#include "control/this_machine.h"
#include "launch/detect/detect.h"
#include "launch/detect/host_file.h"
#include "model/gpu_type.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

void AddSite(const std::optional<SiteFacts>& site, DetectInputs* inputs) {
  if (!site) return;
  inputs->site_name = site->name;
  inputs->site_reason = site->reason;
  inputs->site_gpus = site->gpus;
  inputs->site_slots = site->slots;
  inputs->site_gpu_type = site->gpu_type;
}

// What overcap.yaml declares for the machine itself.
void AddDeclared(const Config& config, DetectInputs* inputs) {
  for (const auto& [name, cluster] : config.clusters) {
    if (cluster.driver != "local" || !cluster.gpus) continue;
    inputs->declared_gpus = 0;
    for (const GpuDeclaration& gpus : *cluster.gpus) {
      inputs->declared_gpus += gpus.count;
      inputs->declared_gpu_type = NormalGpuType(gpus.type);
    }
    return;
  }
}

// Starting NVML takes longer than starting ranks: outside of a job, where nobody takes devices away, what was
// found at this boot still holds.
ProbedGpus ProbeOnce(const LaunchWorld& world, Programs& programs) {
  const bool in_job = world.variables.Has("SLURM_JOB_ID") || world.variables.Has("PBS_JOBID");
  if (in_job) return ProbeGpus(programs);
  const Machine machine = ThisMachine({}, world.root, false);
  if (machine.gpus.empty()) return ProbeGpus(programs);  // there are other makers
  ProbedGpus probed;
  probed.count = static_cast<int>(machine.gpus.size());
  probed.type = machine.gpus.front().type;
  probed.how = "nvml";
  return probed;
}

}  // namespace

Result<Here> DetectHere(const LaunchWorld& world, const std::string& hostfile) {
  Here here;
  const std::string host = OwnHostName();
  OC_TRY(site, FindSite(host, world.variables, DefaultSitePlaces(world.variables)));
  here.site = std::move(site);
  RealPrograms programs(world.variables);
  PosixFiles files;
  DetectInputs inputs{.variables = world.variables,
                      .programs = programs,
                      .files = files,
                      .probe_gpus = [&] { return ProbeOnce(world, programs); },
                      .this_host = host,
                      .user = world.user,
                      .state_folder = world.root};
  AddSite(here.site, &inputs);
  AddDeclared(world.config, &inputs);
  if (!hostfile.empty()) {
    OC_TRY(hosts, ReadHostFile(hostfile));
    inputs.hostfile = std::move(hosts);
    inputs.hostfile_name = hostfile;
  }
  OC_TRY(allocation, DetectAllocation(inputs));
  here.allocation = std::move(allocation);
  return here;
}

}  // namespace overcap
