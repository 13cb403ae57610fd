// SPDX-License-Identifier: Apache-2.0
// Slurm places tasks by the processors of each node, whatever --ntasks-per-node says (a job of 3 and 1
// processors gets 3 and 1 tasks). Only an arbitrary distribution places them as planned, and in the plan's
// order.
#include "base/text.h"
#include "launch/compose/compose.h"

namespace overcap {
namespace {

// What the job asked for and srun would ask for again, against the plan.
constexpr const char* kInherited[] = {
    "SLURM_GPUS",      "SLURM_GPUS_PER_NODE",   "SLURM_GPUS_PER_TASK",  "SLURM_GPUS_PER_SOCKET",
    "SLURM_GPU_BIND",  "SLURM_NTASKS_PER_NODE", "SLURM_NTASKS_PER_GPU", "SLURM_DISTRIBUTION",
    "SLURM_HOSTFILE",  "SLURM_EXCLUSIVE",       "SLURM_EXACT",          "SLURM_LABELIO",
    "SLURM_TRES_BIND", "SLURM_TRES_PER_TASK",  // since 23.11, of --gpus-per-task too
};

constexpr size_t kMostInline = 2000;  // bytes of host names on the command line

// The number of GPUs that every host has, -1 when they differ.
int SameGpus(const RankPlan& plan) {
  for (const PlannedHost& host : plan.hosts) {
    if (host.gpus != plan.hosts[0].gpus) return -1;
  }
  return plan.hosts[0].gpus;
}

// Each host once for each of its ranks.
std::string HostOfEachRank(const RankPlan& plan, char separator) {
  std::string text;
  for (const PlannedHost& host : plan.hosts) {
    for (int i = 0; i < host.ranks; ++i) {
      text += host.name;
      text += separator;
    }
  }
  return text;
}

void AddPlaces(const ComposeInputs& in, LaunchCommand* command) {
  std::vector<std::string>& argv = command->argv;
  if (in.plan.hosts.size() == 1) {
    if (in.request.hosts_chosen) argv.push_back(StrCat("--nodelist=", in.plan.hosts[0].name));
    return;
  }
  argv.push_back("--distribution=arbitrary");
  std::string names = HostOfEachRank(in.plan, ',');
  names.pop_back();
  if (names.size() <= kMostInline || in.request.hostfile.empty()) {
    argv.push_back(StrCat("--nodelist=", names));
  } else {  // a path with a '/' in it: srun reads the names from there
    argv.push_back(StrCat("--nodelist=", in.request.hostfile));
    command->hostfile_text = HostOfEachRank(in.plan, '\n');
  }
}

// A step takes all of the job's GPUs when it asks for none. With --overlap it must ask where there are any:
// else Slurm counts those of other steps against it.
void AddSharing(const ComposeInputs& in, LaunchCommand* command) {
  const int gpus = in.request.gpus_from_scheduler ? SameGpus(in.plan) : 0;
  if (gpus > 0) command->argv.push_back(StrCat("--gpus-per-node=", gpus));
  // A shell that is a step itself, or another launch, holds the processors: never wait for it.
  if (gpus >= 0) command->argv.push_back("--overlap");
  command->argv.push_back("--overcommit");
}

}  // namespace

Result<LaunchCommand> ComposeSrun(const ComposeInputs& in) {
  LaunchCommand command;
  command.argv = {in.request.launcher.program};
  // On several hosts the list of places gives the number of nodes; since 23.11 srun refuses -N next to it.
  if (in.plan.hosts.size() == 1) command.argv.insert(command.argv.end(), {"-N", "1"});
  command.argv.insert(command.argv.end(), {"-n", std::to_string(in.plan.world_size)});
  AddPlaces(in, &command);
  AddSharing(in, &command);
  command.argv.insert(command.argv.end(), in.bind_words.begin(), in.bind_words.end());
  command.argv.insert(command.argv.end(), {"--kill-on-bad-exit=1", "--export=ALL", "--unbuffered"});
  command.unset.assign(std::begin(kInherited), std::end(kInherited));
  return command;
}

}  // namespace overcap
