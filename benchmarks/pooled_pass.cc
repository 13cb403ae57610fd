// SPDX-License-Identifier: Apache-2.0
// pooled_pass NODES JOBS: a full cluster with JOBS jobs in its queue; prints the median and the slowest
// milliseconds of a scheduling pass after one job has ended, how many jobs ran and waited, and the GPUs that
// were free after the last pass.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "sched/pooled/pooled_scheduler.h"

using namespace overcap::pooled;

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 10'000, jobs = argc > 2 ? std::atoi(argv[2]) : 100'000;
  std::mt19937_64 random(1);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<uint64_t>(limit)); };
  Rules rules;
  rules.types = {"titan_x", "2080_ti", "rtx_6000", "a40"};
  for (int i = 0; i < nodes; ++i) rules.nodes.push_back({"n", i % 4, 8, 64, 256'000, 8});
  constexpr int kLabs = 13, kUsers = 200;
  for (int i = 0; i < kLabs; ++i) rules.labs.push_back({"lab", nodes * 8 / kLabs});
  PartitionRule batch{"short", 30, 2 * 86400}, slow{"long", 20, 7 * 86400}, overcap{"overcap", 0, 2 * 86400};
  batch.preempts = slow.preempts = Bit(2);
  overcap.counts = false, overcap.grace_s = 120, overcap.quantum_s = 300;
  rules.partitions = {batch, slow, overcap};
  PooledScheduler scheduler(rules);
  for (int i = 0; i < kUsers; ++i) scheduler.AddAccount({i % kLabs, i, {}});
  const int sizes[] = {1, 1, 1, 1, 2, 2, 4, 8};
  uint64_t key = 0;
  const auto submit = [&](int64_t now) {
    PoolJob job;
    job.key = job.seq = ++key;
    job.account = below(kUsers);
    job.partitions = below(3) == 0 ? 0b100 : below(2) == 0 ? 0b101 : 0b010;
    job.need.gpus = sizes[below(8)];
    job.need.cpus = job.need.gpus * 8;
    if (below(2) == 0) job.need.types = Bit(below(4));
    job.limit_s = 3600 * (1 + below(8));
    job.submit_s = now;
    JobRef ref = 0;
    scheduler.Submit(job, &ref);
  };
  // Until the pool is full: what waits then waits for GPUs.
  int64_t now = 1000;
  do {
    for (int i = 0; i < jobs / 4 + 1; ++i) submit(now);
    scheduler.Pass(++now);
  } while (scheduler.nodes().free_gpus() > 0 && key < 100 * static_cast<uint64_t>(nodes));
  while (static_cast<int>(scheduler.queued()) < jobs) submit(now);
  scheduler.Pass(++now);
  std::vector<JobRef> running;
  std::vector<double> times;
  for (int round = 0; round < 200; ++round) {
    running.clear();
    for (JobRef ref = 0; ref < scheduler.jobs().size(); ++ref) {
      if (scheduler.job(ref).state == PooledScheduler::State::kRunning) running.push_back(ref);
    }
    scheduler.Ended(running[static_cast<size_t>(below(static_cast<int>(running.size())))], ++now);
    const auto begin = std::chrono::steady_clock::now();
    scheduler.Pass(now);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    while (static_cast<int>(scheduler.queued()) < jobs) submit(now);
  }
  std::sort(times.begin(), times.end());
  std::printf("%.3f %.3f %zu %zu %lld\n", times[times.size() / 2], times.back(), scheduler.running(),
              scheduler.queued(), static_cast<long long>(scheduler.nodes().free_gpus()));
  return 0;
}
