// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/policy/slurm_policy.h"

#include <unistd.h>

#include "base/text.h"
#include "clusters/slurm/partition_text.h"
#include "clusters/slurm/policy/policy_difference.h"
#include "clusters/slurm/submit_reply.h"

namespace overcap {
namespace {

constexpr std::chrono::seconds kReadTime{60}, kChangeTime{120};
constexpr int64_t kKnowTimeUs = 30'000'000;

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

Result<void> SlurmPolicy::LookAtAccounts(LivePolicy* live) {
  if (live->config.Get("AccountingStorageType") != "accounting_storage/slurmdbd") {
    return Fail(ErrorCode::kUnavailable,
                StrCat("cluster '", context_->settings().name, "' keeps no accounts: it has no slurmdbd"),
                "caps and preemption by QOS need one: AccountingStorageType=accounting_storage/slurmdbd");
  }
  OC_TRY(qos, context_->Ask(PolicyQosCommand(), kReadTime));
  OC_TRY(associations, context_->Ask(PolicyAssociationsCommand(live->config.Get("ClusterName")), kReadTime));
  OC_TRY(people, context_->Ask(CoordinatorsCommand(), kReadTime));
  OC_TRY(users, context_->Ask(PolicyUsersCommand(), kReadTime));
  OC_TRY(parsed_qos, ParsePolicyQos(qos));
  OC_TRY(parsed_accounts, ParsePolicyAssociations(associations));
  OC_TRY(parsed_people, ParseCoordinators(people));
  OC_TRY(parsed_users, ParsePolicyUsers(users));
  live->qos = std::move(parsed_qos);
  live->accounts = std::move(parsed_accounts);
  live->users = std::move(parsed_users);
  for (PlannedAccount& account : live->accounts) account.coordinators = parsed_people[account.name];
  return {};
}

Result<LivePolicy> SlurmPolicy::Look() {
  LivePolicy live;
  OC_TRY(config, context_->Ask(ConfigCommand(), kReadTime));
  OC_TRY(parsed_config, ParseConfig(config));
  live.config = std::move(parsed_config);
  OC_TRY_VOID(LookAtAccounts(&live));
  OC_TRY(partitions, context_->Ask(PartitionCommand(), kReadTime));
  OC_TRY(parsed_partitions, ParsePartitionFields(partitions));
  live.partitions = std::move(parsed_partitions);
  OC_TRY(reservations, context_->Ask(ReservationsCommand(), kReadTime));
  OC_TRY(parsed_reservations, ParseReservations(reservations));
  live.reservations = std::move(parsed_reservations);
  OC_TRY(nodes, context_->Ask(PolicyNodesCommand(), kReadTime));
  OC_TRY(parsed_nodes, ParsePolicyNodes(nodes));
  live.nodes = std::move(parsed_nodes);
  OC_TRY(jobs, context_->Ask(PolicyJobsCommand(), kReadTime));
  OC_TRY(parsed_jobs, ParsePolicyJobs(jobs));
  live.jobs = std::move(parsed_jobs);
  return live;
}

Result<PolicyDifference> SlurmPolicy::Compare(const Policy& policy) {
  OC_TRY(plan, PlanSlurmPolicy(policy));
  OC_TRY(live, Look());
  const std::string name(live.config.Get("ClusterName"));
  if (!policy.cluster.empty() && policy.cluster != name) {
    return Fail(ErrorCode::kUsage,
                StrCat("the policy is for cluster '", policy.cluster, "', this one is called '", name, "'"),
                "take 'cluster' out of the policy, or choose another cluster with -c");
  }
  return CompareSlurmPolicy(plan, live, context_->clock().WallUs());
}

Result<void> ReadPolicyAnswer(const PolicyStep& step, const ToolAnswer& answer, const std::string& cluster) {
  if (answer.end.ok() || Has(answer.out, "Nothing new added")) return {};
  const std::string said = StrCat(answer.err, "\n", answer.out);
  const auto fail = [&](ErrorCode code, std::string hint) {
    return Fail(code, StrCat("cannot ", step.text, " (", step.argv[0], ": ", Quoted(Trim(said), 300), ")"),
                std::move(hint));
  };
  if (Has(said, "ermission") || Has(said, "privilege") || Has(said, "not running this by"))
    return fail(ErrorCode::kDenied, "only administrators of Slurm may: run it as root or as SlurmUser");
  if (Has(said, "ob(s) active") || Has(said, "have jobs"))
    return fail(ErrorCode::kConflict, "run it again when these jobs have ended");
  if (Has(said, "no TRES known by type"))
    return fail(ErrorCode::kConflict,
                "AccountingStorageTRES=gres/gpu must be in slurm.conf; restart slurmctld, then run it again");
  Error error = ReadToolFailure(step.argv[0], said, answer.end.exit_status, {cluster}).error;
  return fail(error.code, std::move(error.hint));
}

Result<void> SlurmPolicy::Make(const PolicyStep& step) {
  OC_TRY(answer, context_->Call(step.argv, kChangeTime));
  return ReadPolicyAnswer(step, answer, context_->settings().name);
}

std::vector<std::string> UnknownQos(std::string_view assoc_mgr, const std::vector<PlannedQos>& wanted) {
  std::vector<std::string> unknown;
  for (const PlannedQos& qos : wanted) {
    if (!Has(assoc_mgr, StrCat("QOS=", qos.name, "("))) unknown.push_back(qos.name);
  }
  return unknown;
}

// slurmdbd sends changes to the controller by itself. A controller ends when it reads a partition whose QOS
// it does not know.
Result<void> SlurmPolicy::WaitUntilKnown(const Policy& policy) {
  OC_TRY(plan, PlanSlurmPolicy(policy));
  std::vector<std::string> unknown;
  const int64_t until_us = context_->clock().MonotonicUs() + kKnowTimeUs;
  do {
    OC_TRY(text, context_->Ask({"scontrol", "show", "assoc_mgr", "flags=qos"}, kReadTime));
    unknown = UnknownQos(text, plan.qos);
    if (unknown.empty()) return {};
    usleep(100'000);
  } while (context_->clock().MonotonicUs() < until_us);
  return Fail(ErrorCode::kUnavailable,
              StrCat("cluster '", context_->settings().name, "': slurmctld does not know the qos '",
                     unknown[0], "' yet, and would end if slurm.conf named it now"),
              "check that slurmdbd is connected to slurmctld, then run it again");
}

}  // namespace overcap
