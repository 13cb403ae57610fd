// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/replay.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "base/text.h"
#include "sched/pooled/rules_of.h"
#include "sched/pooled/trace_intake.h"

namespace overcap::pooled {
namespace {

constexpr int64_t kSteps = 400;  // over the time in which jobs are submitted

// Sums up GPUs over time: a run costs the same however long it is.
class UseMeter {
 public:
  UseMeter(size_t labs, int64_t from_s, int64_t until_s)
      : from_s_(from_s), step_s_(std::max<int64_t>(60, (until_s - from_s) / kSteps + 1)), lines_(labs * 2) {}

  void Add(int lab, bool overcap, int gpus, int64_t from_s, int64_t until_s) {
    Line& line = lines_[static_cast<size_t>(lab) * 2 + (overcap ? 1 : 0)];
    const auto first = static_cast<size_t>((from_s - from_s_) / step_s_),
               last = static_cast<size_t>((until_s - from_s_) / step_s_);
    if (line.part.size() <= last + 1) line.part.resize(last + 2), line.change.resize(last + 2);
    const auto begin_of = [&](size_t step) { return from_s_ + static_cast<int64_t>(step) * step_s_; };
    if (first == last) {
      line.part[first] += static_cast<double>(until_s - from_s) * gpus;
      return;
    }
    line.part[first] += static_cast<double>(begin_of(first + 1) - from_s) * gpus;
    line.part[last] += static_cast<double>(until_s - begin_of(last)) * gpus;
    line.change[first + 1] += gpus;
    line.change[last] -= gpus;
  }

  UseOverTime Take() const {
    UseOverTime use{from_s_, step_s_, {}, {}};
    size_t steps = 0;
    for (const Line& line : lines_) steps = std::max(steps, line.part.size());
    for (size_t at = 0; at < lines_.size(); ++at) {
      std::vector<double> mean(steps, 0);
      double whole = 0;
      for (size_t i = 0; i < lines_[at].part.size(); ++i) {
        whole += lines_[at].change[i];
        mean[i] = whole + lines_[at].part[i] / static_cast<double>(step_s_);
      }
      (at % 2 == 0 ? use.in_cap : use.overcap).push_back(std::move(mean));
    }
    return use;
  }

 private:
  struct Line {
    std::vector<double> part, change;  // GPU-seconds of steps that are not used whole; GPUs from a step on
  };
  int64_t from_s_, step_s_;
  std::vector<Line> lines_;
};

class Replayer {
 public:
  Replayer(const Policy& policy, const Trace& trace, const ReplayOptions& options)
      : trace_(trace),
        options_(options),
        scheduler_(RulesOf(policy, options.scale)),
        intake_(policy, trace, options, &scheduler_, &out_) {}

  Result<Replayed> Run() {
    out_.jobs.resize(trace_.jobs.size());
    lives_.resize(trace_.jobs.size());
    OC_TRY_VOID(intake_.Begin());
    SortArrivals();
    OC_TRY_VOID(Loop());
    Finish();
    return std::move(out_);
  }

 private:
  struct Life {
    int64_t started_s = 0;
    int64_t done_s = 0;  // of its work, saved
    uint32_t run = 0;
    JobRef ref = 0;
  };
  struct Event {
    int64_t at_s = 0;
    uint32_t job = 0, run = 0;
    bool stop = false;                          // its grace is over
    bool operator<(const Event& other) const {  // later ones are "less": the heap has the earliest in front
      return std::tie(at_s, job, stop) > std::tie(other.at_s, other.job, other.stop);
    }
  };

  void SortArrivals() {
    order_.resize(trace_.jobs.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      return trace_.jobs[a].submit_s < trace_.jobs[b].submit_s;
    });
    if (order_.empty()) return;
    out_.from_s = out_.until_s = trace_.jobs[order_.front()].submit_s;
    meter_ = UseMeter(scheduler_.rules().labs.size(), out_.from_s, trace_.jobs[order_.back()].submit_s);
  }

  Result<void> Loop() {
    for (;;) {
      int64_t at_s = next_ < order_.size() ? trace_.jobs[order_[next_]].submit_s : kForever;
      if (!events_.empty()) at_s = std::min(at_s, events_.top().at_s);
      if (scheduler_.queued() > 0) at_s = std::min(at_s, scheduler_.NextWakeS());
      if (at_s >= kForever) return {};
      now_s_ = std::max(now_s_, at_s);
      for (; !events_.empty() && events_.top().at_s <= now_s_; events_.pop()) Happen(events_.top());
      for (; next_ < order_.size() && trace_.jobs[order_[next_]].submit_s <= now_s_; ++next_)
        Arrive(order_[next_]);
      const std::vector<Action>& actions = scheduler_.Pass(now_s_);
      ++out_.passes;
      for (const Action& action : actions) Do(action);
      if (!options_.watch) continue;
      const std::string wrong = options_.watch(scheduler_, actions, now_s_);
      if (!wrong.empty()) return Fail(ErrorCode::kInternal, StrCat("at ", now_s_, " s: ", wrong));
    }
  }

  void Arrive(uint32_t at) {
    const auto job = intake_.JobOf(at);
    if (!job) return;
    const Refusal why = scheduler_.Submit(*job, &lives_[at].ref);
    if (why == Refusal::kNone) return;
    out_.jobs[at].lab = -1;
    out_.skips.Add(why == Refusal::kTooLarge    ? "larger than the cluster"
                   : why == Refusal::kOverLimit ? "asks for more than a cap or limit allows"
                                                : "no partition takes it",
                   trace_.jobs[at].line);
  }

  void Do(const Action& action) {
    const auto at = static_cast<uint32_t>(action.key);
    Life& life = lives_[at];
    if (action.kind == Action::Kind::kPreempt) {
      const int64_t grace_s = scheduler_.rules().partitions[static_cast<size_t>(action.partition)].grace_s;
      events_.push({now_s_ + grace_s, at, life.run, true});
      return;
    }
    ++out_.starts;
    life.started_s = now_s_;
    if (out_.jobs[at].first_start_s < 0) out_.jobs[at].first_start_s = now_s_;
    events_.push({now_s_ + trace_.jobs[at].run_s - life.done_s, at, life.run, false});
  }

  void Happen(const Event& event) {
    Life& life = lives_[event.job];
    if (event.run != life.run) return;
    ++life.run;
    ReplayedJob& job = out_.jobs[event.job];
    const PooledScheduler::Job& known = scheduler_.job(life.ref);
    const bool overcap = !scheduler_.rules().partitions[static_cast<size_t>(known.partition)].counts;
    const int64_t ran_s = now_s_ - life.started_s;
    const auto used = static_cast<float>(ran_s) * static_cast<float>(job.gpus);
    meter_.Add(job.lab, overcap, job.gpus, life.started_s, now_s_);
    job.used_gpu_s += used;
    if (overcap) job.overcap_gpu_s += used;
    out_.until_s = std::max(out_.until_s, now_s_);
    if (!event.stop) {
      job.end_s = now_s_;
      scheduler_.Ended(life.ref, now_s_);
      return;
    }
    const int64_t saved_s =
        options_.checkpoint_s > 0 ? ran_s / options_.checkpoint_s * options_.checkpoint_s : 0;
    life.done_s += saved_s;
    job.lost_gpu_s += static_cast<float>(ran_s - saved_s) * static_cast<float>(job.gpus);
    ++job.preemptions;
    ++out_.preemptions;
    scheduler_.Requeue(life.ref, now_s_);
  }

  void Finish() {
    out_.rules = scheduler_.rules();
    out_.use = meter_.Take();
    for (const NodeRule& node : out_.rules.nodes) out_.pool_gpus += node.type < 0 ? 0 : node.gpus;
    for (const ReplayedJob& job : out_.jobs) out_.never_started += job.lab >= 0 && job.end_s < 0;
  }

  const Trace& trace_;
  const ReplayOptions& options_;
  PooledScheduler scheduler_;
  Replayed out_;
  TraceIntake intake_;
  UseMeter meter_{0, 0, 0};
  std::vector<uint32_t> order_;
  std::vector<Life> lives_;
  std::priority_queue<Event> events_;
  size_t next_ = 0;
  int64_t now_s_ = 0;
};

}  // namespace

Result<Replayed> Replay(const Policy& policy, const Trace& trace, const ReplayOptions& options) {
  return Replayer(policy, trace, options).Run();
}

}  // namespace overcap::pooled
