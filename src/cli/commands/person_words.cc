// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/person_words.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/job_words.h"
#include "control/submitter_environment.h"
#include "control/terminal_run.h"
#include "sys/user.h"

namespace overcap::cli {
namespace {

constexpr int kMost = 1'000'000;

Result<void> ReadAmounts(const Args& args, JobRequest* request) {
  if (args.Has("--gpus")) {
    OC_TRY(gpus, args.GetInt("--gpus", 0, 0, kMost));
    request->gpus = static_cast<int>(gpus);
  }
  if (args.Has("--cpus")) {
    OC_TRY(cpus, args.GetInt("--cpus", 0, 1, kMost));
    request->cpus = static_cast<int>(cpus);
  }
  if (args.Has("--mem")) {
    OC_TRY(bytes, OfFlag(args.Typed("--mem"), ParseBytes(args.Get("--mem"))));
    request->mem_bytes = bytes;
  }
  if (args.Has("--time")) {
    OC_TRY(seconds, OfFlag(args.Typed("--time"), ParseDurationSeconds(args.Get("--time"))));
    request->time_seconds = seconds;
  }
  return {};
}

// "-w NODE", "-wNODE", "--node NODE", "--node=NODE" at the beginning of `words`, taken off.
Result<std::string> TakeNode(std::vector<std::string>* words) {
  if (words->empty()) return std::string();
  const std::string first = words->front();
  if (first == "-w" || first == "--node") {
    if (words->size() < 2 || (*words)[1].empty())
      return Fail(ErrorCode::kUsage, StrCat("flag '", first, "' needs a value"),
                  StrCat("write '", first, " NODE'"));
    std::string node = (*words)[1];
    words->erase(words->begin(), words->begin() + 2);
    return node;
  }
  const std::string_view glued = first.starts_with("--node=") ? "--node="
                                 : first.starts_with("-w")    ? "-w"
                                                              : "";
  if (glued.empty()) return std::string();
  words->erase(words->begin());
  return first.substr(glued.size());
}

std::string OwnTerminal() {
  const char* terminal = std::getenv("TERM");
  return terminal == nullptr ? "" : terminal;
}

}  // namespace

bool OnTerminal() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

Result<AllocWorld> AllocationsOf(World& world) {
  AllocWorld allocations{.roots = {},
                         .home = {},
                         .cluster = [&world](const std::string& name) { return world.GetCluster(name); },
                         .clock = world.clock()};
  OC_TRY(home, HomeFolder());
  allocations.home = std::move(home);
  OC_TRY(own, world.ClusterFolder());
  allocations.roots.push_back(std::move(own));
  for (const auto& [name, unused] : world.config().clusters) {
    auto root = ClusterRoot(name, world.config(), world.root());
    if (!root) continue;
    std::vector<std::string>& roots = allocations.roots;
    if (std::find(roots.begin(), roots.end(), *root) == roots.end()) roots.push_back(std::move(*root));
  }
  return allocations;
}

Result<JobRequest> ReadPersonRequest(World& world, const Args& args) {
  OC_TRY(folder, world.Folder());
  JobRequest request;
  request.folder = std::move(folder);
  request.environment = OwnEnvironment();
  request.user = world.user();
  request.one_rank_per_node = true;
  const int usual = DefaultsFor(world.config(), world.cluster_name()).gpus;
  request.gpus = usual == kGpusByMachine ? 1 : usual;
  request.gpu_type = args.Get("--gpu-type");
  OC_TRY_VOID(ReadAmounts(args, &request));
  if (args.Has("--partition")) request.placement.partitions = Split(args.Get("--partition"), ',');
  request.placement.account = args.Get("--account");
  request.placement.qos = args.Get("--qos");
  request.placement.node = args.Get("--node");
  return request;
}

Result<PersonTarget> FindTarget(World& world, const std::string& word) {
  OC_TRY(allocations, AllocationsOf(world));
  auto held = FindAllocation(allocations, word);
  if (!held) {
    OC_TRY(jobs, ResolveJobs(world, {word}));
    OC_TRY(records, jobs.cluster->Query(jobs.ids));
    return PersonTarget{jobs.cluster, std::move(records.front())};
  }
  if (!held->record) return Fail(ErrorCode::kUnavailable, StrCat("allocation '", word, "': ", held->trouble));
  OC_TRY(cluster, world.GetCluster(held->allocation.cluster));
  return PersonTarget{cluster, std::move(*held->record)};
}

Result<BesideWords> ReadBesideWords(const Args& args) {
  BesideWords words;
  words.job = args.words().front();
  words.node = args.Get("--node");
  words.command.assign(args.words().begin() + 1, args.words().end());
  OC_TRY(node, TakeNode(&words.command));
  if (!node.empty()) words.node = std::move(node);
  if (!words.command.empty() && words.command[0] == "--") words.command.erase(words.command.begin());
  return words;
}

Result<int> RunBeside(World& world, std::string_view verb, const BesideWords& words) {
  OC_TRY(target, FindTarget(world, words.job));
  OC_TRY(right, RightTo(world, *target.cluster, target.record, JobVerb::kEnter));
  if (right == FilesRight::kAsOwner) {
    std::vector<std::string> all = {target.record.spec.id};
    if (!words.node.empty()) all.insert(all.end(), {"--node", words.node});
    if (!words.command.empty()) all.emplace_back("--");
    all.insert(all.end(), words.command.begin(), words.command.end());
    OwnersRun run = OwnersCommand(world, *target.cluster, target.record, verb, Args(), all);
    run.terminal = OnTerminal();
    run.input = !run.terminal;
    OC_TRY(end, RunOwnersCommand(world, run));
    return end.exit_status;
  }
  OC_TRY_VOID(world.out().Flush());
  ClusterSessions* sessions = target.cluster->Sessions();
  if (sessions == nullptr) {
    if (!words.node.empty()) {
      return Fail(ErrorCode::kUsage,
                  StrCat("cluster '", target.cluster->Name(), "' has no nodes to choose from"));
    }
    OC_TRY(plan, PlanExec(target.record, words.command, OwnTerminal()));
    return Fail(Become(plan));
  }
  AttachRequest request;
  request.command = words.command;
  request.node = words.node;
  request.terminal = OnTerminal();
  OC_TRY(plan, sessions->PlanAttach(target.record, request));
  TerminalWatch watch;
  watch.is_chatter = [&](std::string_view line) { return sessions->IsChatter(line); };
  OC_TRY(run, RunOnTerminal(plan, watch));
  return run.exit_status;
}

}  // namespace overcap::cli
