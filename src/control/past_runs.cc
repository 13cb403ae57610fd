// SPDX-License-Identifier: Apache-2.0
#include "control/past_runs.h"

#include "clusters/cluster_view.h"

namespace overcap {
namespace {

constexpr int64_t kDayUs = int64_t{86400} * 1'000'000;
constexpr size_t kEnough = 50;

Result<std::vector<PastRun>> RunsSince(Cluster& cluster, int64_t since_us) {
  JobFilter filter;
  filter.states = {JobState::kSucceeded, JobState::kFailed, JobState::kCancelled, JobState::kLost};
  filter.since_us = since_us;
  std::vector<PastRun> runs;
  OC_TRY_VOID(cluster.ForEach(filter, [&](const JobRecord& record) {
    const int64_t run_s = (record.ended_us - record.started_us) / 1'000'000;
    // The tasks of an array share one record, and its time is not theirs.
    if (record.started_us == 0 || run_s <= 0 || !record.spec.array.empty()) return;
    PastRun& run = runs.emplace_back();
    run.user = record.spec.user, run.lab = record.spec.lab, run.partition = record.partition;
    run.gpus = record.spec.resources.gpus * record.spec.resources.nodes;
    run.limit_s = record.spec.resources.time_seconds;
    run.run_s = run_s, run.ended_us = record.ended_us;
  }));
  return runs;
}

}  // namespace

Result<std::vector<PastRun>> PastRunsOf(Cluster& cluster, int64_t now_us, bool for_shares) {
  if (ClusterView* view = cluster.View()) return view->PastRuns();
  if (for_shares) return RunsSince(cluster, now_us - 30 * kDayUs);
  OC_TRY(recent, RunsSince(cluster, now_us - 2 * kDayUs));
  if (recent.size() >= kEnough) return recent;
  return RunsSince(cluster, now_us - 30 * kDayUs);
}

}  // namespace overcap
