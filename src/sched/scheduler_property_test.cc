// SPDX-License-Identifier: Apache-2.0
// Drives the scheduler through random worlds and compares it, at every step, with a slow one that looks at
// every job.
#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <tuple>

#include "model/fits.h"
#include "model/gpu_type.h"
#include "sched/scheduler.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// One allocation in use. `ends_us` is when the world will end it; the schedulers do not know that.
struct Lane {
  uint64_t key;
  int slot;
  Resources resources;
  Grant allocation;
  int64_t started_us;
  int64_t ends_us;
};

// The same policy on one machine, written down plainly: all jobs in order, all resources counted anew each
// time.
class SlowScheduler {
 public:
  explicit SlowScheduler(const Machine& machine) : machine_(machine) {}

  std::vector<QueuedJob> queue;
  std::vector<Lane> lanes;
  uint64_t head = 0;  // after Pass(): the job with the reservation, 0 for none
  int64_t head_at = kNever;

  std::vector<Start> Pass(int64_t now) {
    std::vector<Start> starts;
    size_t before = 0;
    do {
      before = starts.size();
      Round(now, &starts);
    } while (starts.size() > before);
    return starts;
  }

  void Round(int64_t now, std::vector<Start>* starts) {
    std::sort(queue.begin(), queue.end(), [](const QueuedJob& a, const QueuedJob& b) {
      return std::tuple(-a.priority, a.seq) < std::tuple(-b.priority, b.seq);
    });
    head = 0;
    kept_.clear();
    for (QueuedJob& job : queue) {
      while (job.slots_wanted > 0) {
        const auto place = Place(job.resources, now);
        if (!place) {
          if (head == 0 && CheckFits(job.resources, machine_)) Reserve(job, now);
          break;
        }
        if (head != 0 && !InTime(job.resources, now)) {
          spare_cpus_ -= Places(job.resources);
          spare_mem_ -= job.resources.mem_bytes;
        }
        starts->push_back({job.key, job.first_slot++, *place});
        lanes.push_back({job.key, starts->back().slot, job.resources, *place, now, kNever});
        --job.slots_wanted;
      }
    }
    std::erase_if(queue, [](const QueuedJob& job) { return job.slots_wanted == 0; });
  }

  static int Places(const Resources& r) { return r.cpus == 0 && r.gpus == 0 ? 1 : r.cpus; }

  bool Takes(const Resources& r, const Gpu& gpu) const { return *GpuTypeMatches(r.gpu_type, gpu.type); }

  static bool Uses(const Lane& lane, int gpu) {
    return std::count(lane.allocation.gpus.begin(), lane.allocation.gpus.end(), gpu) > 0;
  }

  static bool IsFree(const std::vector<Lane>& lanes, int gpu) {
    return std::none_of(lanes.begin(), lanes.end(), [&](const Lane& lane) { return Uses(lane, gpu); });
  }

  int FreeCpus(const std::vector<Lane>& of) const {
    int free = machine_.cpus;
    for (const Lane& lane : of) free -= Places(lane.resources);
    return free;
  }

  int64_t FreeMem(const std::vector<Lane>& of) const {
    int64_t free = machine_.mem_bytes;
    for (const Lane& lane : of) free -= lane.resources.mem_bytes;
    return free;
  }

  bool FitsBeside(const Resources& r, const std::vector<Lane>& of) const {
    int gpus = 0;
    for (const Gpu& gpu : machine_.gpus) gpus += Takes(r, gpu) && IsFree(of, gpu.index);
    return gpus >= r.gpus && FreeCpus(of) >= Places(r) && FreeMem(of) >= r.mem_bytes;
  }

 private:
  bool InTime(const Resources& r, int64_t now) const {
    return head_at != kNever && r.time_seconds > 0 && now + r.time_seconds * kSecond <= head_at;
  }

  bool IsKept(int gpu) const { return std::count(kept_.begin(), kept_.end(), gpu) > 0; }

  std::optional<Grant> Place(const Resources& r, int64_t now) const {
    if (!FitsBeside(r, lanes)) return std::nullopt;
    const bool any = head == 0 || InTime(r, now);
    if (!any && (Places(r) > spare_cpus_ || r.mem_bytes > spare_mem_)) return std::nullopt;
    std::vector<std::pair<bool, int>> choice;  // kept ones first where allowed
    for (const Gpu& gpu : machine_.gpus) {
      const bool kept = head != 0 && IsKept(gpu.index);
      if (Takes(r, gpu) && IsFree(lanes, gpu.index) && (any || !kept)) choice.emplace_back(!kept, gpu.index);
    }
    if (static_cast<int>(choice.size()) < r.gpus) return std::nullopt;
    std::sort(choice.begin(), choice.end());
    Grant allocation;
    for (int i = 0; i < r.gpus; ++i) allocation.gpus.push_back(choice[static_cast<size_t>(i)].second);
    std::sort(allocation.gpus.begin(), allocation.gpus.end());
    for (int cpu = 0; cpu < machine_.cpus && static_cast<int>(allocation.cpus.size()) < r.cpus; ++cpu) {
      const bool used = std::any_of(lanes.begin(), lanes.end(), [&](const Lane& lane) {
        return std::count(lane.allocation.cpus.begin(), lane.allocation.cpus.end(), cpu) > 0;
      });
      if (!used) allocation.cpus.push_back(cpu);
    }
    return allocation;
  }

  void Reserve(const QueuedJob& job, int64_t now) {
    const auto end = [&](const Lane& lane) {
      return lane.resources.time_seconds == 0
                 ? kNever
                 : std::max(now, lane.started_us + lane.resources.time_seconds * kSecond);
    };
    std::vector<Lane> left = lanes;
    std::sort(left.begin(), left.end(), [&](const Lane& a, const Lane& b) {
      return std::tuple(end(a), a.started_us, a.key, a.slot) >
             std::tuple(end(b), b.started_us, b.key, b.slot);
    });
    head_at = now;
    while (!FitsBeside(job.resources, left)) {
      head_at = end(left.back());
      left.pop_back();
    }
    head = job.key;
    std::vector<std::tuple<bool, int>> choice;  // in use now first, then the highest
    for (const Gpu& gpu : machine_.gpus) {
      if (Takes(job.resources, gpu) && IsFree(left, gpu.index))
        choice.emplace_back(IsFree(lanes, gpu.index), -gpu.index);
    }
    std::sort(choice.begin(), choice.end());
    for (int i = 0; i < job.resources.gpus; ++i)
      kept_.push_back(-std::get<1>(choice[static_cast<size_t>(i)]));
    spare_cpus_ = FreeCpus(left) - Places(job.resources);
    spare_mem_ = FreeMem(left) - job.resources.mem_bytes;
  }

  Machine machine_;
  std::vector<int> kept_;
  int spare_cpus_ = 0;
  int64_t spare_mem_ = 0;
};

// A machine, two schedulers and what a user may do to them, all from one seed.
class RandomWorld {
 public:
  explicit RandomWorld(uint64_t seed) : random_(seed), machine_(AnyMachine()), slow_(machine_) {
    fast_.SetNodes({machine_});
    limits_percent_ = Below(3) * 50;  // worlds without, with some and with only limits
  }

  void Run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) {
      RandomEvent();
      Step();
    }
    for (int i = 0; !(slow_.lanes.empty() && OnlyHopelessLeft()) && !testing::Test::HasFatalFailure(); ++i) {
      ASSERT_LT(i, 5000) << "a job is starved";
      ASSERT_FALSE(slow_.lanes.empty()) << "nothing runs, but a job that fits waits";
      AdvanceToNextEnd();
      Step();
    }
  }

 private:
  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }

  Machine AnyMachine() {
    Machine machine{"here", 1 + Below(8), 16, {}};
    const int gpus = Below(9);
    for (int i = 0; i < gpus; ++i) machine.gpus.push_back({i, Below(3) == 0 ? "a" : "b", "", 0});
    return machine;
  }

  Resources AnyResources() {
    constexpr const char* kTypes[] = {"", "", "", "a", "b", "!a", "a|b"};
    Resources r;
    r.gpus = Below(3) == 0 ? 0 : Below(5);
    r.cpus = Below(2) == 0 ? 0 : Below(5);
    r.mem_bytes = Below(2) == 0 ? 0 : Below(17);
    r.time_seconds = Below(100) < limits_percent_ ? 1 + Below(20) : 0;
    r.gpu_type = kTypes[Below(7)];
    return r;
  }

  void RandomEvent() {
    const int kind = Below(10);
    if (kind < 5) return SubmitOne();
    if (kind < 8) return AdvanceToNextEnd();
    if (kind == 8) return Advance(now_ + Below(3) * kSecond / 2);
    RemoveOne();
  }

  void SubmitOne() {
    QueuedJob job{++last_key_,
                  last_key_,
                  Below(4) == 0 ? Below(3) : 0,
                  AnyResources(),
                  Below(4) == 0 ? 1 + Below(6) : 1,
                  0};
    if (!CheckFits(job.resources, machine_) && Below(4) != 0) return;
    fast_.Enqueue(job);
    slow_.queue.push_back(job);
    priorities_[job.key] = job.priority;
    promise_key_ = 0;  // it may stand before the first one
  }

  void RemoveOne() {
    if (slow_.queue.empty()) return;
    const auto at = slow_.queue.begin() + Below(static_cast<int>(slow_.queue.size()));
    fast_.Remove(at->key);
    slow_.queue.erase(at);
  }

  // Never past an end, so that no limit is broken by the size of a step.
  void Advance(int64_t to) {
    for (const Lane& lane : slow_.lanes) to = std::min(to, lane.ends_us);
    if (to != kNever) now_ = std::max(now_, to);
    EndWhatIsDue();
  }
  void AdvanceToNextEnd() { Advance(kNever); }

  void EndWhatIsDue() {
    std::erase_if(slow_.lanes, [&](const Lane& lane) {
      if (lane.ends_us > now_) return false;
      fast_.Release(lane.key, lane.slot);
      return true;
    });
  }

  void Step() {
    const std::vector<Start> starts = fast_.Pass(now_);
    const std::vector<Start> expected = slow_.Pass(now_);
    ASSERT_EQ(starts, expected);
    for (Lane& lane : slow_.lanes) {
      if (lane.ends_us != kNever) continue;
      const int64_t limit = lane.resources.time_seconds;
      lane.ends_us =
          now_ + (limit > 0 ? 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(limit * kSecond))
                            : Below(40) * kSecond + 1);
    }
    CheckNothingIsGivenTwice();
    CheckOrder(starts);
    CheckFirstJobIsNotDelayed(starts);
    ASSERT_TRUE(fast_.Pass(now_).empty());
    ASSERT_EQ(fast_.queued(), slow_.queue.size());
    ASSERT_EQ(fast_.running(), slow_.lanes.size());
  }

  void CheckNothingIsGivenTwice() {
    std::vector<int> gpus, cpus;
    for (const Lane& lane : slow_.lanes) {
      gpus.insert(gpus.end(), lane.allocation.gpus.begin(), lane.allocation.gpus.end());
      cpus.insert(cpus.end(), lane.allocation.cpus.begin(), lane.allocation.cpus.end());
      ASSERT_EQ(static_cast<int>(lane.allocation.gpus.size()), lane.resources.gpus);
      ASSERT_EQ(static_cast<int>(lane.allocation.cpus.size()), lane.resources.cpus);
    }
    for (std::vector<int>* ids : {&gpus, &cpus}) {
      std::sort(ids->begin(), ids->end());
      ASSERT_EQ(std::adjacent_find(ids->begin(), ids->end()), ids->end());
    }
    for (const int gpu : gpus) ASSERT_TRUE(gpu >= 0 && gpu < static_cast<int>(machine_.gpus.size()));
    for (const int cpu : cpus) ASSERT_TRUE(cpu >= 0 && cpu < machine_.cpus);
    ASSERT_GE(slow_.FreeCpus(slow_.lanes), 0);
    ASSERT_GE(slow_.FreeMem(slow_.lanes), 0);
  }

  // The first job does not fit any more, and nothing has overtaken an older job of its own kind.
  void CheckOrder(const std::vector<Start>& starts) {
    for (const QueuedJob& job : slow_.queue) {
      if (!CheckFits(job.resources, machine_)) continue;
      ASSERT_FALSE(slow_.FitsBeside(job.resources, slow_.lanes)) << "the first job fits and waits";
      break;
    }
    for (const QueuedJob& job : slow_.queue) {
      for (const Start& start : starts) {
        const Lane& lane = *std::find_if(slow_.lanes.begin(), slow_.lanes.end(), [&](const Lane& l) {
          return l.key == start.key && l.slot == start.slot;
        });
        const bool overtakes = lane.resources == job.resources && start.key > job.key;
        ASSERT_TRUE(!overtakes || priorities_[start.key] > job.priority);
      }
    }
  }

  // Once the first job has been promised a time and nothing new was submitted, it starts by then.
  void CheckFirstJobIsNotDelayed(const std::vector<Start>& starts) {
    const bool started =
        std::any_of(starts.begin(), starts.end(), [&](const Start& s) { return s.key == promise_key_; });
    if (promise_key_ != 0 && slow_.head == promise_key_ && !started) {
      ASSERT_LT(now_, promise_at_) << "job " << promise_key_ << " was delayed";
      ASSERT_LE(slow_.head_at, promise_at_) << "job " << promise_key_ << " will be delayed";
    }
    promise_key_ = slow_.head;
    promise_at_ = slow_.head_at;
  }

  bool OnlyHopelessLeft() {
    return std::none_of(slow_.queue.begin(), slow_.queue.end(),
                        [&](const QueuedJob& job) { return CheckFits(job.resources, machine_).has_value(); });
  }

  std::mt19937_64 random_;
  Machine machine_;
  Scheduler fast_;
  SlowScheduler slow_;
  std::map<uint64_t, int> priorities_;
  int64_t now_ = 1'000 * kSecond;
  uint64_t last_key_ = 0;
  int limits_percent_ = 0;
  uint64_t promise_key_ = 0;
  int64_t promise_at_ = kNever;
};

TEST(SchedulerPropertyTest, RandomWorldsKeepEveryPromise) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(seed);
    RandomWorld(seed).Run(80);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace overcap
