// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/job_planner.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "clusters/plan_text.h"
#include "clusters/slurm/accounts_text.h"
#include "clusters/slurm/node_kinds.h"
#include "clusters/slurm/partition_text.h"
#include "clusters/slurm/submit_place.h"
#include "sys/user.h"

namespace overcap {
namespace {

constexpr int64_t kDayUs = 86400LL * 1'000'000;
constexpr int64_t kRareUs = 600'000'000;  // what changes when an administrator types something
constexpr int64_t kLead = 60, kShortestLead = 10;

template <typename T>
const T& Either(const T& first, const T& second) {
  return first.empty() ? second : first;
}

// Whether the user tells Slurm's programs themselves where jobs belong.
bool SaysPlace(const std::vector<std::string>& args) {
  static constexpr const char* kVariables[] = {"SBATCH_ACCOUNT", "SBATCH_QOS", "SBATCH_PARTITION",
                                               "SLURM_ACCOUNT",  "SLURM_QOS",  "SLURM_PARTITION"};
  static constexpr std::string_view kOptions[] = {"--account", "-A", "--qos", "-q", "--partition", "-p"};
  return std::ranges::any_of(kVariables, [](const char* name) { return getenv(name) != nullptr; }) ||
         std::ranges::any_of(args, [](const std::string& word) {
           return std::ranges::any_of(kOptions,
                                      [&](std::string_view option) { return word.starts_with(option); });
         });
}

// Jobs through a store find all on their node: nothing of here is named.
std::vector<std::string> AgentWords(const JobSpec& spec, const ClusterSettings& settings,
                                    const std::string& folder) {
  const std::string grace = StrCat(settings.grace_seconds);
  if (spec.store.empty())
    return {settings.binary,          "agent",   "--job", folder,    "--store",
            settings.root + "/store", "--under", "slurm", "--grace", grace};
  const NodeSettings& node = settings.node;
  return {node.program.empty() ? settings.binary : node.program,
          "agent",
          "--id",
          spec.id,
          "--via",
          JobStoreToJson(spec.store),
          "--node-folder",
          node.folder.empty() ? StrCat("/tmp/overcap-", geteuid()) : node.folder,
          "--backlog",
          StrCat(node.backlog),
          "--under",
          "slurm",
          "--grace",
          grace};
}

}  // namespace

int WarnSeconds(const JobSpec& spec) {
  if (spec.warn_seconds > 0 || !spec.requeue_on_timeout) return static_cast<int>(spec.warn_seconds);
  if (spec.resources.time_seconds <= 0) return kLead;
  return static_cast<int>(std::clamp(spec.resources.time_seconds / 10, kShortestLead, kLead));
}

ToolContext JobPlanner::Named(const JobSpec& spec) const {
  const SchedulerSettings& ours = context_->settings().scheduler;
  return {context_->settings().name,
          Either(spec.placement.account, ours.account),
          Join(Either(spec.placement.partitions, ours.partitions), ","),
          Either(spec.placement.qos, ours.qos),
          ours.constraint,
          [this] { return AccountsOfUser(); },
          [this] { return PartitionNames(); }};
}

std::string JobPlanner::AccountsOfUser() const {
  const auto text = context_->mirror().Read(MirrorKind::kAssociations, kRareUs);
  const auto all = text ? ParseAssociations(*text->text) : Result<std::vector<SlurmAssociation>>();
  std::set<std::string> names;
  for (const SlurmAssociation& one : all ? *all : std::vector<SlurmAssociation>()) {
    if (one.user == UserName()) names.insert(one.account);
  }
  if (names.empty()) return "sacctmgr show assoc user=$USER format=account,qos shows yours";
  return StrCat("yours: ", Join({names.begin(), names.end()}, ", "));
}

std::string JobPlanner::PartitionNames() const {
  const auto text = context_->mirror().Read(MirrorKind::kPartitions, kRareUs);
  const auto all = text ? ParsePartitions(*text->text) : Result<std::vector<SlurmPartition>>();
  std::vector<std::string> names;
  for (const SlurmPartition& one : all ? *all : std::vector<SlurmPartition>()) names.push_back(one.name);
  return names.empty() ? "sinfo -s lists them" : StrCat("there are: ", Join(names, ", "));
}

SbatchSettings JobPlanner::Settings(const JobSpec& spec) {
  const SchedulerSettings& ours = context_->settings().scheduler;
  SbatchSettings settings;
  settings.partitions = Either(spec.placement.partitions, ours.partitions);
  settings.account = Either(spec.placement.account, ours.account);
  settings.qos = Either(spec.placement.qos, ours.qos);
  settings.constraint = ours.constraint;
  settings.reservation = ours.reservation;
  settings.gpu_type_as_constraint = ours.gpu_type_as_constraint;
  settings.warn_seconds = WarnSeconds(spec);
  settings.extra_args = ours.args;
  settings.extra_args.insert(settings.extra_args.end(), spec.placement.args.begin(),
                             spec.placement.args.end());
  if (!spec.resources.gpu_type.empty()) settings.gpu_types = GpuTypesOf(KnownNodes());
  if (!SaysPlace(settings.extra_args)) ChoosePlaceFor(spec.user.empty() ? UserName() : spec.user, &settings);
  return settings;
}

// What cannot be known is sbatch's to say.
void JobPlanner::ChoosePlaceFor(const std::string& user, SbatchSettings* settings) {
  if (settings->partitions.empty()) return;
  const auto text = context_->mirror().Read(MirrorKind::kPartitions, kRareUs);
  const auto partitions = text ? ParsePartitions(*text->text) : Result<std::vector<SlurmPartition>>();
  const SubmitPlace named{settings->partitions, settings->account, settings->qos};
  if (!text || !partitions || !PlaceMatters(named, *partitions)) return;
  std::string default_account;
  if (named.account.empty()) {
    const auto known = context_->mirror().Read(MirrorKind::kUsers, kDayUs);
    const auto users = known ? ParseUsers(*known->text) : Result<std::vector<SlurmUser>>();
    for (const SlurmUser& one : users ? *users : std::vector<SlurmUser>()) {
      if (one.name == user) default_account = one.default_account;
    }
  }
  SubmitPlace chosen = ChoosePlace(named, *partitions, default_account);
  settings->account = std::move(chosen.account), settings->qos = std::move(chosen.qos);
}

Result<void> JobPlanner::CheckLimits(const JobSpec& spec) const {
  const SchedulerSettings& limits = context_->settings().scheduler;
  const Resources& asked = spec.resources;
  const auto above = [&](const std::string& what, const std::string& limit) {
    return Fail(ErrorCode::kUsage,
                StrCat("asks for ", what, ", cluster '", context_->settings().name,
                       "' is configured for at most ", limit),
                "ask for less, or change the limits of the cluster in overcap.yaml");
  };
  if (limits.max_gpus > 0 && asked.gpus > limits.max_gpus)
    return above(CountOf(asked.gpus, "GPU"), StrCat(limits.max_gpus));
  if (limits.max_time_seconds > 0 && asked.time_seconds > limits.max_time_seconds)
    return above(FormatDuration(asked.time_seconds), FormatDuration(limits.max_time_seconds));
  return {};
}

Result<std::vector<SlurmNode>> JobPlanner::ReadNodes(int64_t max_age_us) {
  OC_TRY(text, context_->mirror().Read(MirrorKind::kNodes, max_age_us));
  OC_TRY(parsed, ParseSinfo(*text.text, text.mark));
  return std::move(parsed.nodes);
}

std::vector<SlurmNode> JobPlanner::KnownNodes() {
  const auto text = context_->mirror().Peek(MirrorKind::kNodes);
  auto parsed = text ? ParseSinfo(*text->text, text->mark) : Result<SinfoText>();
  if (text && parsed) return std::move(parsed->nodes);
  return ReadNodes(kDayUs).value_or(std::vector<SlurmNode>());  // once, so that defaults do not change later
}

// Yesterday's nodes will do for what fits; before a job is refused they are looked at again. What cannot be
// known is sbatch's to say.
Result<void> JobPlanner::CheckFits(const JobSpec& spec) {
  if (spec.resources.gpus <= 0) return {};
  const auto known = ReadNodes(kDayUs);
  if (!known || CheckFitsNodes(spec.resources, *known)) return {};
  const auto fresh = ReadNodes(0);
  return CheckFitsNodes(spec.resources, fresh ? *fresh : *known);
}

Result<SbatchPlan> JobPlanner::Plan(const JobSpec& spec, std::vector<SlurmDependency> after) {
  OC_TRY_VOID(ValidateSpec(spec));
  OC_TRY_VOID(CheckLimits(spec));
  OC_TRY_VOID(CheckFits(spec));
  const ClusterSettings& settings = context_->settings();
  SbatchRequest request;
  request.spec = spec;
  request.folder = context_->JobFolder(spec.id);
  request.agent = AgentWords(spec, settings, request.folder);
  request.after = std::move(after);
  return PlanSbatch(request, Settings(spec));
}

std::vector<std::string> JobPlanner::Command(const std::string& id, const Placement& placement) {
  JobSpec spec;
  spec.placement = placement;
  return SbatchCommand(id, placement, Settings(spec));
}

std::string JobPlanner::Text(const JobSpec& spec, const SbatchPlan& plan) const {
  return StrCat(PlanText(spec), "\n$ ", ShellJoin(plan.argv), " < ", ShellQuote(plan.script_path), "\n\n# ",
                plan.script_path, "\n", plan.script);
}

}  // namespace overcap
