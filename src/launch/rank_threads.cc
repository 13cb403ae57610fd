// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_threads.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unistd.h>

#include "base/text.h"
#include "sys/devices.h"

namespace overcap {
namespace {

constexpr char kThreads[] = "OMP_NUM_THREADS";
constexpr char kOurThreads[] = "OVERCAP_OMP_NUM_THREADS";  // the value, where it is our choice

}  // namespace

int RankThreads(const RankCpus& cpus, int local_ranks) {
  const int ranks = std::max(1, local_ranks);
  const int together = cpus.shared > 0 ? cpus.shared : cpus.own;
  const int share = std::max(1, together / ranks);
  const int threads = cpus.own > 0 ? std::min(cpus.own, share) : share;
  return ranks == 1 && (threads == cpus.own || together == 0) ? 0 : threads;
}

int JobCpusHere(const Variables& job_variables, bool parent) {
  int cpus = static_cast<int>(AffinityCpus(parent ? getppid() : 0).size());
  const auto bound = [&](long long limit) {
    if (limit > 0 && (cpus == 0 || limit < cpus)) cpus = static_cast<int>(limit);
  };
  bound(static_cast<long long>(std::ceil(CpuQuota())));
  bound(ParseInt(job_variables.Get("SLURM_CPUS_ON_NODE")).value_or(0));
  return cpus;
}

bool ThreadsAreOurs(const Variables& variables) {
  return variables.Has(kOurThreads) && variables.Get(kThreads) == variables.Get(kOurThreads);
}

void SetThreads(int threads, Variables* variables) {
  if (ThreadsAreOurs(*variables)) variables->Remove(kThreads);
  variables->Remove(kOurThreads);
  if (threads <= 0 || variables->Has(kThreads)) return;
  variables->Set(kThreads, std::to_string(threads));
  variables->Set(kOurThreads, std::to_string(threads));
}

}  // namespace overcap
