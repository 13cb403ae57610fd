// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/fair_share.h"

#include <algorithm>
#include <cmath>

namespace overcap::pooled {
namespace {

double DecayOf(int64_t half_life_s) {
  return half_life_s > 0 ? std::log(2.0) / static_cast<double>(half_life_s) : 0;
}

}  // namespace

FairShare::FairShare(const Rules& rules)
    : weights_(rules.weights),
      lab_decay_(DecayOf(rules.weights.lab_half_life_s)),
      user_decay_(DecayOf(rules.weights.user_half_life_s)),
      labs_(rules.labs.size()),
      known_(rules.labs.size(), 0) {
  double sum = 0;
  for (const LabRule& lab : rules.labs) sum += lab.share;
  for (const LabRule& lab : rules.labs) {
    lab_shares_.push_back(sum > 0 ? lab.share / sum : 1.0 / static_cast<double>(rules.labs.size()));
    members_.push_back(lab.members);
  }
}

int FairShare::AddAccount(int lab) {
  lab_of_.push_back(lab);
  accounts_.push_back({});
  scores_.push_back(weights_.lab + weights_.user);
  const auto at = static_cast<size_t>(lab);
  members_[at] = std::max(members_[at], ++known_[at]);
  refreshed_s_ = -kForever;
  return static_cast<int>(accounts_.size()) - 1;
}

// U' = gpus - decay * U, solved.
double FairShare::At(const Use& use, double decay, int64_t now_s) {
  const auto seconds = static_cast<double>(now_s - use.at_s);
  if (seconds <= 0) return use.amount;
  if (decay == 0) return use.amount + use.gpus * seconds;
  const double left = std::exp(-decay * seconds);
  return use.amount * left + use.gpus / decay * (1 - left);
}

void FairShare::Add(Use* use, double decay, double gpus, int64_t now_s) {
  if (now_s < use->at_s) {  // told late, by who adopts what runs already
    use->amount += gpus * static_cast<double>(use->at_s - now_s);
    use->gpus += gpus;
    return;
  }
  use->amount = At(*use, decay, now_s);
  use->at_s = now_s;
  use->gpus += gpus;
}

void FairShare::Change(int account, double gpus, int64_t now_s) {
  Add(&accounts_[static_cast<size_t>(account)], user_decay_, gpus, now_s);
  Add(&labs_[static_cast<size_t>(lab_of_[static_cast<size_t>(account)])], lab_decay_, gpus, now_s);
}

void FairShare::AddAmount(Use* use, double decay, double amount, int64_t at_s) {
  if (at_s > use->at_s) Add(use, decay, 0, at_s);
  use->amount += amount * std::exp(-decay * static_cast<double>(use->at_s - at_s));
}

void FairShare::AddUse(int account, double gpu_seconds, int64_t at_s) {
  AddAmount(&accounts_[static_cast<size_t>(account)], user_decay_, gpu_seconds, at_s);
  AddAmount(&labs_[static_cast<size_t>(lab_of_[static_cast<size_t>(account)])], lab_decay_, gpu_seconds,
            at_s);
  refreshed_s_ = -kForever;
}

double FairShare::UsedBy(int account, int64_t now_s) const {
  return At(accounts_[static_cast<size_t>(account)], user_decay_, now_s);
}

// 2^-(used / entitled): 1 for who has used nothing, 1/2 for who has used exactly their share.
bool FairShare::Refresh(int64_t now_s) {
  if (now_s - refreshed_s_ < weights_.look_every_s || (weights_.lab == 0 && weights_.user == 0)) return false;
  refreshed_s_ = now_s;
  std::vector<double> used, own(labs_.size(), 0);
  double sum = 0;
  for (const Use& lab : labs_) sum += used.emplace_back(At(lab, lab_decay_, now_s));
  if (sum <= 0) return false;
  for (size_t i = 0; i < accounts_.size(); ++i)
    own[static_cast<size_t>(lab_of_[i])] += UsedBy(static_cast<int>(i), now_s);
  for (size_t i = 0; i < accounts_.size(); ++i) {
    const auto lab = static_cast<size_t>(lab_of_[i]);
    const double share = lab_shares_[lab];
    const double of_lab = share > 0 ? std::exp2(-(used[lab] / sum) / share) : 0;
    const double part = own[lab] > 0 ? UsedBy(static_cast<int>(i), now_s) / own[lab] : 0;
    scores_[i] = weights_.lab * of_lab + weights_.user * std::exp2(-part * members_[lab]);
  }
  return true;
}

}  // namespace overcap::pooled
