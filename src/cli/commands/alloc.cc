// SPDX-License-Identifier: Apache-2.0
#include "control/alloc.h"

#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/allocation_text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "cli/commands/person_words.h"
#include "control/ssh_config_file.h"
#include "sys/own_host_name.h"

namespace overcap::cli {
namespace {

constexpr Flag kAllocFlags[] = {
    {"--name", "", "NAME", "what it is called; dev by default"},
    {"--gpus", "-n", "GPUS", "GPUs; 0 for none"},
    {"--gpu-type", "-g", "TYPES", "which GPUs: 'a40|rtx_6000'"},
    {"--node", "-w", "NODE", "on this node"},
    {"--time", "-t", "LIMIT", "how long at most: 30m, 4h, 2d"},
    {"--partition", "-p", "PARTITIONS", "where in the cluster: 'short,overcap'"},
    {"--cpus", "-c", "N", "processors"},
    {"--mem", "", "SIZE", "memory: 512M, 16G"},
    {"--account", "", "ACCOUNT", "who pays, in the cluster's own terms"},
    {"--qos", "", "QOS", "the quality of service, in the cluster's own terms"},
    {"--no-requeue", "", "", "do not come back after a preemption"},
    {"--ssh", "", "HOW", "'job': into the job itself; 'jump': to the node through this host"},
    {"--install", "", "", "let ssh know allocations by name: as `overcap alloc install`"},
    {"--no-wait", "", "", "return as soon as it is queued"},
};

constexpr int64_t kEntryPatienceUs = 20'000'000;  // between the job's start and the entry for ssh

Result<AllocRequest> ReadRequest(World& world, const Args& args) {
  OC_TRY(job, ReadPersonRequest(world, args));
  AllocRequest request;
  request.name = args.Has("--name") ? args.Get("--name") : "dev";
  request.job = std::move(job);
  request.job.name = request.name;
  request.job.requeue = !args.Has("--no-requeue");
  request.binary = world.binary();
  request.home = world.root();
  const std::vector<std::string>& files = world.config().files;
  if (!files.empty()) request.config = files.front();
  const std::string_view how = args.Get("--ssh");
  if (how == "jump") request.jump = OwnHostName();
  if (args.Has("--ssh") && how != "jump" && how != "job")
    return Fail(ErrorCode::kUsage, StrCat("--ssh: ", Quoted(how), " is neither 'job' nor 'jump'"));
  return request;
}

// Looks until it runs (true) or has ended (false).
Result<bool> WaitUntilItRuns(World& world, Cluster& cluster, AllocationState* state) {
  const std::string& name = state->allocation.name;
  OC_TRY_VOID(world.out().Flush());
  DetachOnInterrupt(StrCat("allocation '", name,
                           "' stays in the queue; overcap alloc list shows it, overcap release ", name,
                           " gives it up"));
  const bool shows = world.out().terminal().err_is_terminal && !world.out().quiet() && !world.out().json();
  std::string told;
  while (true) {
    OC_TRY(started, cluster.Wait({state->allocation.job}, WaitUntil::kStarted, 1));
    OC_TRY(records, cluster.Query({state->allocation.job}));
    state->record = std::move(records.front());
    const JobRecord& record = *state->record;
    if (started && record.state == JobState::kRunning) break;
    if (IsFinal(record.state)) break;
    const std::string text = StrCat("allocation '", name, "' ", StateText(record, world.clock().WallUs()));
    if (shows) world.out().Progress(text);
    if (!shows && text != told) world.out().Note(text);
    told = text;
  }
  world.out().ClearProgress();
  return !IsFinal(state->record->state);
}

// The holder writes it on its node; a shared file system may need a moment to show it here.
void WaitForEntry(World& world, const AllocWorld& allocations, AllocationState* state) {
  const int64_t until_us = world.clock().MonotonicUs() + kEntryPatienceUs;
  while (world.clock().MonotonicUs() < until_us) {
    auto now = FindAllocation(allocations, state->allocation.name);
    if (!now || now->allocation.job != state->allocation.job) return;
    *state = std::move(*now);
    if (state->ssh) return;
    usleep(100'000);
  }
}

void Tell(World& world, const AllocWorld& allocations, const AllocationState& state) {
  Output& out = world.out();
  if (out.json()) {
    out.Json(AllocationJson(state, world.clock().WallUs()));
    return;
  }
  const std::string& name = state.allocation.name;
  out.Line(AllocationLine(state, world.clock().WallUs()));
  out.Note(StrCat("overcap ssh ", name, "        a shell there"));
  if (state.ssh && SshIncludeInstalled(allocations.home)) {
    out.Note(StrCat("ssh ", SshHostName(name), "        the same; also for VS Code, scp, sftp, ssh -L"));
  } else if (state.ssh) {
    out.Note(StrCat("overcap alloc install   lets ssh and VS Code know it as ", SshHostName(name)));
  }
  out.Note(StrCat("overcap release ", name, "    gives it back"));
}

Result<int> RunAlloc(World& world, const Args& args) {
  OC_TRY(cluster, world.GetCluster());
  OC_TRY(allocations, AllocationsOf(world));
  OC_TRY(request, ReadRequest(world, args));
  if (args.Has("--install")) {
    OC_TRY(install, InstallSshInclude(allocations.home));
    world.out().Note(InstallLine(install));
  }
  SubmitTools tools{*cluster, world.config(), world.clock(), world.random(),
                    allocations.roots.front() + "/store"};
  OC_TRY(made, MakeAllocation(std::move(request), allocations, tools));
  for (const std::string& note : made.notes) world.out().Note(note);
  AllocationState& state = made.state;
  world.out().MustTell(
      StrCat("allocation '", state.allocation.name, "' is queued as job ", state.allocation.job),
      "overcap alloc list");
  if (args.Has("--no-wait")) {
    if (world.out().json()) {
      world.out().Json(AllocationJson(state, world.clock().WallUs()));
    } else {
      world.out().Line(AllocationLine(state, world.clock().WallUs()));
    }
    return 0;
  }
  OC_TRY(runs, WaitUntilItRuns(world, *cluster, &state));
  if (!runs) {
    const std::string text = StateText(*state.record, world.clock().WallUs());
    const std::string job = state.allocation.job;
    (void)LookAtAllocations(allocations);  // frees the name
    return Fail(ErrorCode::kConflict,
                StrCat("allocation '", state.allocation.name, "' did not come to be: ", text),
                StrCat("overcap query ", job, " tells more"));
  }
  WaitForEntry(world, allocations, &state);
  Tell(world, allocations, state);
  return 0;
}

}  // namespace

constinit const Command kAlloc = {
    .name = "alloc",
    .summary = "hold GPUs under a name, for shells, ssh and VS Code; outlives the terminal",
    .usage = "[--name NAME] [-n GPUS] [-g TYPES] [-w NODE] [-t LIMIT] [-p PARTITION]",
    .flags = kAllocFlags,
    .max_words = 0,
    .run = RunAlloc,
};

}  // namespace overcap::cli
