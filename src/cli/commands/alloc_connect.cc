// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "cli/commands/person_words.h"
#include "control/ssh_keys.h"
#include "control/terminal_run.h"
#include "sys/posix_files.h"
#include "sys/variables.h"

namespace overcap::cli {
namespace {

// ssh runs this from anywhere, in no shell of the user's: what the maker of the allocation had is put in
// place first. Variables that are there stay, but PATH gets longer.
Result<void> TakeContact(World& world, const HeldAllocation& allocation) {
  Variables own = Variables::OfThisProcess();
  for (const std::string& entry : allocation.variables) {
    const std::string name = entry.substr(0, entry.find('='));
    const std::string value = entry.substr(std::min(name.size() + 1, entry.size()));
    if (name == "PATH") {
      setenv("PATH", own.Has("PATH") ? StrCat(own.Get("PATH"), ":", value).c_str() : value.c_str(), 1);
    } else {
      setenv(name.c_str(), value.c_str(), 0);
    }
  }
  if (!allocation.config.empty() && PosixFiles().Exists(allocation.config))
    world.UseConfigFile(allocation.config);
  return world.LoadConfig();
}

// Once more from the start, with the root that the allocation's maker had.
Error Again(const World& world, const HeldAllocation& allocation, const std::string& file) {
  Replacement plan;
  plan.program = world.binary();
  plan.argv = {"overcap", "alloc", "connect", file};
  Variables own = Variables::OfThisProcess();
  own.Set("OVERCAP_HOME", allocation.home);
  plan.environment = own.entries();
  return Become(plan);
}

Result<std::string> FileOf(World& world, const std::string& word) {
  if (word.starts_with('/')) return word;
  OC_TRY_VOID(world.LoadConfig());
  OC_TRY(allocations, AllocationsOf(world));
  const auto held = FindAllocation(allocations, word);
  if (held) return held->file;
  return Fail(ErrorCode::kNotFound, StrCat("there is no allocation ", Quoted(word)),
              "overcap alloc list shows what you hold");
}

Result<int> RunAllocConnect(World& world, const Args& args) {
  OC_TRY(file, FileOf(world, args.words().front()));
  auto text = PosixFiles().Read(file);
  if (!text) {
    return Fail(ErrorCode::kNotFound,
                StrCat("the allocation of ", Quoted(file, 200), " is not held any more"),
                "overcap alloc holds a new one");
  }
  OC_TRY(allocation, AllocationFromJson(*text));
  if (allocation.home != world.root()) return Fail(Again(world, allocation, file));
  OC_TRY_VOID(TakeContact(world, allocation));
  OC_TRY(cluster, world.GetCluster(allocation.cluster));
  OC_TRY(records, cluster->Query({allocation.job}));
  const JobRecord& record = records.front();
  if (record.state != JobState::kRunning) {
    return Fail(ErrorCode::kConflict,
                StrCat("allocation '", allocation.name, "' is ", StateText(record, world.clock().WallUs())));
  }
  const std::string keys = SshKeysOf(RootOfAllocationFile(file)).folder;
  OC_TRY(plan, PlanConnection(*cluster, record, world.binary(), keys));
  OC_TRY_VOID(world.out().Flush());
  ClusterSessions* sessions = cluster->Sessions();
  if (sessions == nullptr) return Fail(Become(plan));
  TerminalWatch watch;
  watch.caller_leaves = true;
  watch.is_chatter = [&](std::string_view line) { return sessions->IsChatter(line); };
  OC_TRY(run, RunOnTerminal(plan, watch));
  return run.exit_status;
}

}  // namespace

constinit const Command kAllocConnect = {
    .name = "alloc connect",
    .summary = "become a connection into an allocation, for ssh's ProxyCommand",
    .usage = "NAME",
    .min_words = 1,
    .max_words = 1,
    .run = RunAllocConnect,
    .without_config = true,
};

}  // namespace overcap::cli
