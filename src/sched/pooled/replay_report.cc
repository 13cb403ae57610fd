// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/replay_report.h"

#include <algorithm>

#include "base/text.h"

namespace overcap::pooled {

namespace {

constexpr int64_t kShortestRunS = 10;

struct Sample {
  std::vector<float> waits, slowdowns;
  GroupReport report;
};

double Mean(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Of sorted values: the smallest that `part` of them do not exceed.
double Quantile(const std::vector<float>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<size_t>(part * static_cast<double>(sorted.size()));
  return sorted[std::min(at, sorted.size() - 1)];
}

void Add(const ReplayedJob& job, const TraceJob& was, Sample* sample) {
  GroupReport& report = sample->report;
  ++report.jobs;
  report.preemptions += job.preemptions;
  report.gpu_hours += job.used_gpu_s / 3600.0;
  report.overcap_gpu_hours += job.overcap_gpu_s / 3600.0;
  report.lost_gpu_hours += job.lost_gpu_s / 3600.0;
  if (job.first_start_s >= 0) sample->waits.push_back(static_cast<float>(job.first_start_s - was.submit_s));
  if (job.end_s >= 0)
    sample->slowdowns.push_back(
        static_cast<float>(std::max<int64_t>(job.end_s - was.submit_s, kShortestRunS)) /
        static_cast<float>(std::max(was.run_s, kShortestRunS)));
}

GroupReport Finished(Sample* sample) {
  std::sort(sample->waits.begin(), sample->waits.end());
  std::sort(sample->slowdowns.begin(), sample->slowdowns.end());
  GroupReport report = sample->report;
  report.wait_mean_s = Mean(sample->waits);
  report.wait_p50_s = Quantile(sample->waits, 0.5);
  report.wait_p90_s = Quantile(sample->waits, 0.9);
  report.wait_p99_s = Quantile(sample->waits, 0.99);
  report.slowdown_mean = Mean(sample->slowdowns);
  report.slowdown_p50 = Quantile(sample->slowdowns, 0.5);
  report.slowdown_p90 = Quantile(sample->slowdowns, 0.9);
  return report;
}

double Jain(const std::vector<GroupReport>& groups) {
  double sum = 0, squares = 0, count = 0;
  for (const GroupReport& group : groups) {
    if (group.jobs == 0) continue;
    sum += group.slowdown_mean, squares += group.slowdown_mean * group.slowdown_mean, ++count;
  }
  return squares > 0 ? sum * sum / (count * squares) : 1;
}

double UseUntil(const Replayed& replayed, int64_t last_submit_s) {
  const UseOverTime& use = replayed.use;
  const auto steps = static_cast<size_t>(std::max<int64_t>(1, (last_submit_s - use.from_s) / use.step_s));
  double sum = 0;
  for (const auto* lines : {&use.in_cap, &use.overcap}) {
    for (const std::vector<double>& line : *lines) {
      for (size_t i = 0; i < std::min(steps, line.size()); ++i) sum += line[i];
    }
  }
  return replayed.pool_gpus > 0 ? sum / static_cast<double>(steps) / replayed.pool_gpus : 0;
}

}  // namespace

ReplayReport ReportOf(const Replayed& replayed, const Trace& trace) {
  Sample all;
  std::vector<Sample> labs(replayed.rules.labs.size()), users(replayed.users.size());
  int64_t last_submit_s = replayed.from_s;
  for (size_t i = 0; i < replayed.jobs.size(); ++i) {
    const ReplayedJob& job = replayed.jobs[i];
    if (job.lab < 0) continue;
    last_submit_s = std::max(last_submit_s, trace.jobs[i].submit_s);
    Add(job, trace.jobs[i], &all);
    Add(job, trace.jobs[i], &labs[static_cast<size_t>(job.lab)]);
    Add(job, trace.jobs[i], &users[static_cast<size_t>(job.user)]);
  }
  ReplayReport report;
  report.all = Finished(&all);
  report.all.name = "all";
  for (size_t i = 0; i < labs.size(); ++i) {
    report.labs.push_back(Finished(&labs[i]));
    report.labs.back().name = replayed.rules.labs[i].name;
    report.labs.back().gpu_cap = replayed.rules.labs[i].gpu_cap;
  }
  for (size_t i = 0; i < users.size(); ++i) {
    if (users[i].report.jobs == 0) continue;
    report.users.push_back(Finished(&users[i]));
    report.users.back().name = replayed.users[i];
  }
  std::stable_sort(report.users.begin(), report.users.end(),
                   [](const auto& a, const auto& b) { return a.jobs > b.jobs; });
  report.pool_gpus = replayed.pool_gpus;
  report.span_s = replayed.until_s - replayed.from_s;
  const double whole = static_cast<double>(report.span_s) * replayed.pool_gpus / 3600;
  report.utilisation = whole > 0 ? report.all.gpu_hours / whole : 0;
  report.use_while_waited = UseUntil(replayed, last_submit_s);
  report.lab_fairness = Jain(report.labs);
  report.user_fairness = Jain(report.users);
  report.skipped = trace.skips.count() + replayed.skips.count();
  report.never_started = replayed.never_started;
  report.notes = replayed.notes;
  for (const TraceSkips* skips : {&trace.skips, &replayed.skips}) {
    for (std::string& words : skips->Words()) report.notes.push_back(std::move(words));
  }
  return report;
}

}  // namespace overcap::pooled
