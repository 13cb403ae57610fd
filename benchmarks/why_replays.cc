// SPDX-License-Identifier: Apache-2.0
// What `why` computes for one job of a long queue: P50 and P90 from 200 replays and what would start sooner.
// `why_replays JOBS THREADS`: milliseconds for a job in the middle of the queue and for the last one, of JOBS
// waiting ones on 284 GPUs of 13 labs.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "control/forecast_crew.h"
#include "sched/forecast/forecast.h"

namespace overcap::forecast {
namespace {

using pooled::Bit;

constexpr int kLabs = 13, kUsers = 10;

pooled::Rules Pool() {
  pooled::Rules rules;
  rules.types = {"titan_x", "2080_ti", "rtx_6000", "a40"};
  const int nodes[] = {6, 10, 6, 14}, gpus[] = {8, 8, 8, 8};
  for (int type = 0; type < 4; ++type) {
    for (int i = 0; i < nodes[type]; ++i) {
      pooled::NodeRule node;
      node.name = rules.types[static_cast<size_t>(type)] + std::to_string(i);
      node.type = type, node.gpus = gpus[type], node.cpus = 64, node.mem_mb = 512 << 10,
      node.cpus_per_gpu = 8;
      rules.nodes.push_back(node);
    }
  }
  for (int i = 0; i < kLabs; ++i)
    rules.labs.push_back({"lab" + std::to_string(i), 22, {}, pooled::kNoLimit, 1, kUsers});
  pooled::PartitionRule debug, shorter, longer, over;
  debug.name = "debug", debug.priority = 30, debug.max_time_s = 4 * 3600, debug.per_user.gpus = 5;
  shorter.name = "short", shorter.priority = 20, shorter.max_time_s = 2 * 86400;
  longer.name = "long", longer.priority = 10, longer.max_time_s = 7 * 86400;
  over.name = "overcap", over.max_time_s = 7 * 86400, over.counts = false, over.grace_s = 300;
  debug.preempts = shorter.preempts = longer.preempts = Bit(3);
  rules.partitions = {debug, shorter, longer, over};
  return rules;
}

// `waiting` jobs of all labs in the queue, and the pool as full as they make it.
LiveQueue Queue(int waiting, std::vector<PastRun>* past) {
  std::mt19937_64 random(7);
  const auto below = [&](uint64_t limit) { return static_cast<int>(random() % limit); };
  LiveQueue queue;
  queue.rules = Pool();
  queue.now_s = 1'800'000'000;
  for (int i = 0; i < kLabs * kUsers; ++i) queue.accounts.push_back({i / kUsers, i, {}});
  const int sizes[] = {1, 1, 1, 1, 2, 2, 4, 8};
  const int64_t limits[] = {3600, 4 * 3600, 12 * 3600, 86400, 2 * 86400};
  pooled::PooledScheduler scheduler(queue.rules);
  for (const pooled::AccountRule& account : queue.accounts) scheduler.AddAccount(account);
  const auto add = [&] {
    LiveJob job;
    job.told.account = below(kLabs * kUsers);
    job.user = "u" + std::to_string(job.told.account),
    job.lab = "lab" + std::to_string(job.told.account / kUsers);
    job.told.key = job.told.seq = queue.jobs.size();
    // Each user has three kinds of jobs.
    std::mt19937_64 kind(static_cast<uint64_t>(job.told.account * 3 + below(3)));
    kind.discard(5);
    job.told.need.gpus = sizes[kind() % 8];
    job.told.need.cpus = job.told.need.gpus * 8;
    if (kind() % 2 == 0) job.told.need.types = Bit(static_cast<int>(kind() % 4));
    job.told.limit_s = limits[kind() % 5];
    job.told.submit_s = queue.now_s - 2 * 86400 + static_cast<int64_t>(queue.jobs.size()) * 60;
    job.told.partitions = Bit(job.told.limit_s > 43200 ? 2 : 1) | (kind() % 3 == 0 ? Bit(3) : 0);
    queue.jobs.push_back(job);
  };
  // What runs is what the scheduler starts of as many as it takes.
  std::vector<pooled::JobRef> refs;
  for (int i = 0; i < 1000; ++i) {
    add();
    refs.emplace_back();
    (void)scheduler.Submit(queue.jobs.back().told, &refs.back());
  }
  std::vector<LiveJob> runs;
  for (const pooled::Action& action : scheduler.Pass(queue.now_s)) {
    LiveJob job = queue.jobs[static_cast<size_t>(action.key)];
    job.runs = true, job.in = action.partition, job.shares = action.shares;
    job.started_s = queue.now_s - static_cast<int64_t>(random() % static_cast<uint64_t>(job.told.limit_s));
    job.told.key = job.told.seq = runs.size();
    runs.push_back(job);
  }
  queue.jobs = std::move(runs);
  for (int i = 0; i < waiting; ++i) add();
  for (int i = 0; i < kLabs * kUsers * 50; ++i) {
    const int user = i % (kLabs * kUsers);
    const int64_t limit_s = limits[below(5)];
    past->push_back({"u" + std::to_string(user), "lab" + std::to_string(user / kUsers), "", limit_s,
                     limit_s * (1 + below(100)) / (100 * (1 + user % 3)) + 1, i});
  }
  return queue;
}

double Milliseconds(LiveQueue* queue, size_t target, const std::vector<PastRun>& past, const Crew& crew) {
  queue->target = target;
  const auto begin = std::chrono::steady_clock::now();
  const RunTimes times(past);
  const Forecast forecast = Foresee(*queue, times, {1, 200, 12, ~uint64_t{0}}, crew);
  const double taken =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  std::fprintf(stderr, "target %zu: now %d p50 +%ld s p90 +%ld s, %d replays, %zu sooner\n", target,
               forecast.now, static_cast<long>(forecast.start.p50_s - queue->now_s),
               static_cast<long>(forecast.start.p90_s - queue->now_s), forecast.replays,
               forecast.sooner.size());
  return taken;
}

}  // namespace
}  // namespace overcap::forecast

int main(int argc, char** argv) {
  using namespace overcap::forecast;
  const int waiting = argc > 1 ? std::atoi(argv[1]) : 2000, threads = argc > 2 ? std::atoi(argv[2]) : 2;
  std::vector<overcap::PastRun> past;
  LiveQueue queue = Queue(waiting, &past);
  const size_t runs = queue.jobs.size() - static_cast<size_t>(waiting);
  const Crew crew = threads > 1 ? overcap::ThreadCrew(threads) : OneThread();
  const double middle = Milliseconds(&queue, runs + static_cast<size_t>(waiting) / 2, past, crew);
  const double last = Milliseconds(&queue, queue.jobs.size() - 1, past, crew);
  std::printf("%.1f %.1f %zu %d\n", middle, last, runs, waiting);
  return 0;
}
