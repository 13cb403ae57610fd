// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/policy_queue_rules.h"

#include <algorithm>
#include <map>

#include "sched/pooled/job_defaults.h"
#include "sched/pooled/rules_of.h"

namespace overcap::forecast {
namespace {

using pooled::Bit;
using pooled::Rules;

template <typename List>
int PlaceIn(const List& list, const std::string& name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.name == name; });
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

uint64_t BitsIn(const Rules& to, const Rules& from, uint64_t bits) {
  uint64_t made = 0;
  for (size_t i = 0; i < to.partitions.size(); ++i) {
    const int at = PlaceIn(from.partitions, to.partitions[i].name);
    if (at >= 0 && (bits & Bit(at)) != 0) made |= Bit(static_cast<int>(i));
  }
  return made;
}

void TakePartitions(const Rules& from, Rules* rules) {
  std::vector<pooled::PartitionRule> made;
  for (const pooled::PartitionRule& old : rules->partitions) {
    const int at = PlaceIn(from.partitions, old.name);
    if (at < 0) {
      made.push_back(old);
      continue;
    }
    pooled::PartitionRule rule = from.partitions[static_cast<size_t>(at)];
    rule.preempts = BitsIn(*rules, from, rule.preempts);
    rule.preempts_in_lab = BitsIn(*rules, from, rule.preempts_in_lab);
    const std::vector<char> allowed = std::move(rule.labs);
    rule.labs.clear();
    for (const pooled::LabRule& lab : rules->labs) {
      const int place = PlaceIn(from.labs, lab.name);
      rule.labs.push_back(allowed.empty() || (place >= 0 && allowed[static_cast<size_t>(place)] != 0));
    }
    made.push_back(std::move(rule));
  }
  rules->partitions = std::move(made);
}

// All labs share the pool, also those that have no jobs now.
void TakeLabs(const Rules& from, Rules* rules) {
  for (const pooled::LabRule& lab : from.labs) {
    const int at = PlaceIn(rules->labs, lab.name);
    if (at >= 0) {
      rules->labs[static_cast<size_t>(at)].share = lab.share;
      rules->labs[static_cast<size_t>(at)].members = lab.members;
      continue;
    }
    rules->labs.push_back(lab);
    rules->labs.back().type_caps.clear();  // of the policy's types; it has no jobs
  }
}

// The CPUs that are kept for a free GPU, which jobs get that ask for none; and when nodes take no jobs.
void TakeNodes(const Rules& from, Rules* rules) {
  const auto of_host = [&](const std::string& host) -> const pooled::NodeRule* {
    const auto short_name = [](const std::string& name) { return name.substr(0, name.find('.')); };
    const bool single = std::all_of(from.nodes.begin(), from.nodes.end(), [&](const pooled::NodeRule& one) {
      return one.name == from.nodes.front().name;
    });
    for (const pooled::NodeRule& one : from.nodes) {
      if (single || one.name == host || one.name == short_name(host)) return &one;
    }
    return nullptr;
  };
  for (pooled::NodeRule& node : rules->nodes) {
    if (const pooled::NodeRule* host = of_host(node.name); host != nullptr) node.closed = host->closed;
    if (node.type < 0) continue;
    const std::string& type = rules->types[static_cast<size_t>(node.type)];
    const auto same = std::find_if(from.nodes.begin(), from.nodes.end(), [&](const pooled::NodeRule& one) {
      return one.type >= 0 && from.types[static_cast<size_t>(one.type)] == type;
    });
    if (same != from.nodes.end()) node.cpus_per_gpu = same->cpus_per_gpu;
  }
}

void TakeJob(const Policy& policy, const Rules& from, LiveQueue* queue, LiveJob* job) {
  if (job->submitted_s > 0) job->told.submit_s = job->submitted_s;
  job->told.boost = job->priority;
  const uint64_t partitions = job->runs ? Bit(job->in) : job->told.partitions;
  job->told.need = pooled::WithDefaults(queue->rules, partitions, job->told.need);
  const int lab = PlaceIn(from.labs, job->lab);
  if (lab < 0) return;
  auto& rule = queue->accounts[static_cast<size_t>(job->told.account)];
  rule.limits = pooled::AccountOf(policy, lab, job->user, rule.user).limits;
}

// What was used before, also by users who have no jobs now: it counts for their labs.
void TakeUses(const Rules& from, const std::vector<PastRun>& past, LiveQueue* queue) {
  std::map<std::pair<std::string, std::string>, int> accounts;  // by user and lab
  int users = 0;
  for (const LiveJob& job : queue->jobs) accounts[{job.user, job.lab}] = job.told.account;
  for (const pooled::AccountRule& account : queue->accounts) users = std::max(users, account.user + 1);
  for (const PastRun& run : past) {
    const int lab = PlaceIn(queue->rules.labs, run.lab);
    if (lab < 0 || run.gpus <= 0) continue;
    const auto [found, is_new] =
        accounts.try_emplace({run.user, run.lab}, static_cast<int>(queue->accounts.size()));
    if (is_new) queue->accounts.push_back({lab, users++, {}});
    const int partition = PlaceIn(from.partitions, run.partition);
    const double charge = partition < 0 ? 1 : from.partitions[static_cast<size_t>(partition)].charge;
    queue->uses.push_back(
        {found->second, charge * run.gpus * static_cast<double>(run.run_s), run.ended_us / 1'000'000});
  }
  std::stable_sort(queue->uses.begin(), queue->uses.end(),
                   [](const pooled::LiveUse& a, const pooled::LiveUse& b) { return a.at_s < b.at_s; });
}

}  // namespace

void FollowPolicy(const Policy& policy, const std::vector<PastRun>& past, LiveQueue* queue) {
  const Rules from = pooled::RulesOf(policy);
  TakeLabs(from, &queue->rules);
  TakePartitions(from, &queue->rules);
  TakeNodes(from, &queue->rules);
  queue->rules.weights = from.weights;
  for (LiveJob& job : queue->jobs) TakeJob(policy, from, queue, &job);
  TakeUses(from, past, queue);
}

}  // namespace overcap::forecast
