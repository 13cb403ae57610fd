// SPDX-License-Identifier: Apache-2.0
// How often forecasts hold: a history is sent through the scheduler, now and then it is asked when a job that
// waits will start, and the same history tells when it did.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "sched/forecast/correction.h"
#include "sched/forecast/forecast.h"
#include "sched/pooled/replay.h"

namespace overcap::forecast {

struct Calibration {
  struct Asked {
    size_t job = 0;
    int64_t at_s = 0;
    StartTimes foreseen, told;  // told: corrected by what became of earlier ones
    bool now = false;
  };
  std::vector<Asked> asked;
  int p50_held = 0, p90_held = 0, judged = 0;
  int bare_p50_held = 0, bare_p90_held = 0;  // without the correction
  double wait_s = 0, error_s = 0;            // means: how long they waited, how far P50 was away

  double p50() const { return judged == 0 ? 0 : static_cast<double>(p50_held) / judged; }
  double p90() const { return judged == 0 ? 0 : static_cast<double>(p90_held) / judged; }
};

// Asks about one job that waits after every `every` passes with a queue.
class Calibrator {
 public:
  Calibrator(const Trace& trace, int every, bool with_history, const Crew& crew)
      : trace_(trace),
        every_(every),
        with_history_(with_history),
        crew_(crew),
        runs_(trace.jobs.size(), -1),
        first_(trace.jobs.size(), -1),
        costs_(trace.jobs.size()) {}

  // For ReplayOptions::watch.
  std::string Watch(const pooled::PooledScheduler& scheduler, const std::vector<pooled::Action>& actions,
                    int64_t now_s) {
    for (const pooled::Action& action : actions) {
      if (action.kind != pooled::Action::Kind::kStart) continue;
      if (first_[action.key] < 0) first_[action.key] = now_s;
      runs_[action.key] = now_s, begun_.push_back(action.key);
      const pooled::PoolJob& told = scheduler.job(action.job).told;
      const double charge = scheduler.rules().partitions[static_cast<size_t>(action.partition)].charge;
      costs_[action.key] = {told.account, charge * told.need.all_gpus()};
    }
    if (scheduler.queued() == 0 || ++passes_ % every_ != 0) return "";
    Ask(scheduler, now_s);
    return "";
  }

  Calibration Judge(const pooled::Replayed& replayed) {
    for (const Calibration::Asked& asked : found_.asked) {
      const int64_t started_s = replayed.jobs[asked.job].first_start_s;
      if (started_s < 0 || asked.told.p90_s >= kNever) continue;
      ++found_.judged;
      found_.bare_p50_held += started_s <= asked.foreseen.p50_s + 60;
      found_.bare_p90_held += started_s <= asked.foreseen.p90_s + 60;
      found_.p50_held += started_s <= asked.told.p50_s + 60;
      found_.p90_held += started_s <= asked.told.p90_s + 60;
      found_.wait_s += static_cast<double>(started_s - asked.at_s);
      found_.error_s += std::abs(static_cast<double>(started_s - asked.told.p50_s));
    }
    if (found_.judged > 0) found_.wait_s /= found_.judged, found_.error_s /= found_.judged;
    return found_;
  }

 private:
  void Ask(const pooled::PooledScheduler& scheduler, int64_t now_s) {
    LiveQueue queue = QueueOf(scheduler, now_s);
    std::vector<size_t> waiting;
    for (size_t i = 0; i < queue.jobs.size(); ++i) {
      if (!queue.jobs[i].runs && runs_[keys_[i]] < 0) waiting.push_back(i);
    }
    if (waiting.empty()) return;
    queue.target = waiting[Mixed(7, static_cast<uint64_t>(now_s)) % waiting.size()];
    const RunTimes times(with_history_ ? WithRunning(PastAt(now_s), queue) : std::vector<PastRun>());
    const Forecast told = Foresee(queue, times, {1, 60, 0, 0}, crew_);
    const StartTimes corrected = told.now ? told.start : Corrected(told.start, now_s, CorrectionAt(now_s));
    found_.asked.push_back({keys_[queue.target], now_s, told.start, corrected, told.now});
  }

  // By the last promises, as far as it is known by then what became of them.
  Correction CorrectionAt(int64_t now_s) const {
    std::vector<PastPromise> past;
    for (size_t i = found_.asked.size(); i-- > 0 && past.size() < 100;) {
      const Calibration::Asked& asked = found_.asked[i];
      if (asked.now || asked.foreseen.p90_s >= kNever) continue;
      const int64_t start_s = first_[asked.job];
      past.push_back({asked.foreseen.p50_s - asked.at_s, asked.foreseen.p90_s - asked.at_s,
                      (start_s < 0 ? now_s : start_s) - asked.at_s, start_s >= 0});
    }
    return with_history_ ? CorrectionFrom(past) : Correction();
  }

  LiveQueue QueueOf(const pooled::PooledScheduler& scheduler, int64_t now_s) {
    LiveQueue queue;
    queue.rules = scheduler.rules();
    queue.now_s = now_s;
    keys_.clear();
    for (const pooled::PooledScheduler::Job& job : scheduler.jobs()) {
      using State = pooled::PooledScheduler::State;
      if (job.state == State::kGone) continue;
      LiveJob live;
      live.told = job.told;
      keys_.push_back(static_cast<size_t>(job.told.key));
      const TraceJob& from = trace_.jobs[keys_.back()];
      live.told.key = queue.jobs.size();
      live.user = trace_.users.all()[static_cast<size_t>(from.user)];
      live.lab = trace_.labs.all()[static_cast<size_t>(from.lab)];
      const auto account = static_cast<size_t>(job.told.account);
      if (queue.accounts.size() <= account) queue.accounts.resize(account + 1);
      queue.accounts[account] = {job.lab, job.user, {}};
      if (job.state == State::kRunning || job.state == State::kLeaving)
        live.runs = true, live.in = job.partition, live.shares = job.shares, live.started_s = job.started_s;
      queue.jobs.push_back(std::move(live));
    }
    AddUses(&queue);
    return queue;
  }

  void AddUses(LiveQueue* queue) const {
    std::vector<double> used(queue->accounts.size(), 0);
    const auto half_life = static_cast<double>(std::max<int64_t>(1, queue->rules.weights.lab_half_life_s));
    for (const size_t job : begun_) {
      const int64_t end_s = runs_[job] + trace_.jobs[job].run_s;
      const auto account = static_cast<size_t>(costs_[job].first);
      if (end_s > queue->now_s || account >= used.size()) continue;
      used[account] += costs_[job].second * static_cast<double>(trace_.jobs[job].run_s) *
                       std::exp2(-static_cast<double>(queue->now_s - end_s) / half_life);
    }
    for (size_t i = 0; i < used.size(); ++i)
      queue->uses.push_back({static_cast<int>(i), used[i], queue->now_s});
  }

  // Runs that were over by then; of those the last ones.
  std::vector<PastRun> PastAt(int64_t now_s) const {
    std::vector<PastRun> past;
    for (size_t i = begun_.size(); i-- > 0 && past.size() < 5000;) {
      const TraceJob& job = trace_.jobs[begun_[i]];
      const int64_t end_s = runs_[begun_[i]] + job.run_s;
      if (end_s >= now_s) continue;
      past.push_back({trace_.users.all()[static_cast<size_t>(job.user)],
                      trace_.labs.all()[static_cast<size_t>(job.lab)], "", job.limit_s, job.run_s,
                      end_s * 1'000'000});
    }
    return past;
  }

  const Trace& trace_;
  const int every_;
  const bool with_history_;
  const Crew& crew_;
  std::vector<int64_t> runs_;                  // by job: its last start
  std::vector<int64_t> first_;                 // by job: its first one
  std::vector<std::pair<int, double>> costs_;  // by job: its account, and what a second of it counts
  std::vector<size_t> begun_;                  // in the order of starts
  std::vector<size_t> keys_;                   // of the queue's jobs, in the trace
  int passes_ = 0;
  Calibration found_;
};

inline Result<Calibration> Calibrate(const Policy& policy, const Trace& trace, pooled::ReplayOptions options,
                                     int every, bool with_history, const Crew& crew) {
  Calibrator calibrator(trace, every, with_history, crew);
  options.watch = [&](const pooled::PooledScheduler& scheduler, const std::vector<pooled::Action>& actions,
                      int64_t now_s) { return calibrator.Watch(scheduler, actions, now_s); };
  OC_TRY(replayed, pooled::Replay(policy, trace, options));
  return calibrator.Judge(replayed);
}

}  // namespace overcap::forecast
