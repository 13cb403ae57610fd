// SPDX-License-Identifier: Apache-2.0
// Who has used how much, with a half-life: GPU-seconds of labs and of their users, exact at any time from the
// GPUs that each has and the time since that last changed.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/pooled/rules.h"

namespace overcap::pooled {

class FairShare {
 public:
  explicit FairShare(const Rules& rules);

  // A lab's user gets a number of its own; the users of one lab share it evenly.
  int AddAccount(int lab);
  // From now on the account has `gpus` more (or fewer): a job's GPUs times the charge of its partition.
  void Change(int account, double gpus, int64_t now_s);
  // What was used before anybody counted: GPU-seconds, as of `at_s`.
  void AddUse(int account, double gpu_seconds, int64_t at_s);
  // The part of a job's score that follows from use, as of the last Refresh(); 0 to lab + user weight.
  double Of(int account) const { return scores_[static_cast<size_t>(account)]; }
  // Looks at the use anew, at most as often as the weights say. True: scores have changed.
  bool Refresh(int64_t now_s);

  double UsedBy(int account, int64_t now_s) const;  // GPU-seconds, decayed

 private:
  struct Use {
    double amount = 0;
    int64_t at_s = 0;
    double gpus = 0;
  };
  static double At(const Use& use, double decay, int64_t now_s);
  static void Add(Use* use, double decay, double gpus, int64_t now_s);
  static void AddAmount(Use* use, double decay, double amount, int64_t at_s);

  ShareWeights weights_;
  double lab_decay_, user_decay_;  // per second
  std::vector<double> lab_shares_;
  std::vector<Use> labs_, accounts_;
  std::vector<int> lab_of_, members_, known_;  // by account; by lab: told, seen
  std::vector<double> scores_;
  int64_t refreshed_s_ = -kForever;
};

}  // namespace overcap::pooled
