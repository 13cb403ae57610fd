// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/policy_queue_rules.h"

#include <algorithm>
#include <map>

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

}  // namespace

void FollowPolicy(const Policy& policy, const std::vector<PastRun>& past, LiveQueue* queue) {
  const Rules from = pooled::RulesOf(policy);
  TakePartitions(from, &queue->rules);
  queue->rules.weights = from.weights;
  for (pooled::LabRule& lab : queue->rules.labs) {
    const int at = PlaceIn(from.labs, lab.name);
    if (at >= 0)
      lab.share = from.labs[static_cast<size_t>(at)].share,
      lab.members = from.labs[static_cast<size_t>(at)].members;
  }
  std::map<std::pair<std::string, std::string>, int> accounts;  // by user and lab
  for (LiveJob& job : queue->jobs) {
    accounts[{job.user, job.lab}] = job.told.account;
    if (job.submitted_s > 0) job.told.submit_s = job.submitted_s;
    job.told.boost = job.priority;
    const int lab = PlaceIn(from.labs, job.lab);
    if (lab < 0) continue;
    auto& rule = queue->accounts[static_cast<size_t>(job.told.account)];
    rule.limits = pooled::AccountOf(policy, lab, job.user, rule.user).limits;
  }
  for (const PastRun& run : past) {
    const auto found = accounts.find({run.user, run.lab});
    const int partition = PlaceIn(from.partitions, run.partition);
    const double charge = partition < 0 ? 1 : from.partitions[static_cast<size_t>(partition)].charge;
    if (found != accounts.end() && run.gpus > 0)
      queue->uses.push_back(
          {found->second, charge * run.gpus * static_cast<double>(run.run_s), run.ended_us / 1'000'000});
  }
  std::stable_sort(queue->uses.begin(), queue->uses.end(),
                   [](const pooled::LiveUse& a, const pooled::LiveUse& b) { return a.at_s < b.at_s; });
}

}  // namespace overcap::forecast
