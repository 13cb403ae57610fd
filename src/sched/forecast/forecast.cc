// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/forecast.h"

#include <algorithm>

namespace overcap::forecast {
namespace {

constexpr int64_t kWorthS = 60;         // what is sooner by less is not told
constexpr int64_t kMostJobs = 800'000;  // of all replays together
constexpr int kFewestReplays = 20;
constexpr int64_t kGrainOfWait = 512;
constexpr size_t kGlance = 2;  // of so many futures one at least must be sooner

std::vector<StartReplays::Room> RoomsFor(const Crew& crew) {
  return std::vector<StartReplays::Room>(static_cast<size_t>(crew.workers));
}

// Whether it is worth telling.
bool Better(const StartTimes& one, const StartTimes& than, int64_t now_s) {
  if (one.p50_s >= kNever || one.p90_s > than.p90_s) return false;
  if (than.p50_s >= kNever) return true;
  return than.p50_s - one.p50_s > std::max(kWorthS, (than.p50_s - now_s) / 20);
}

// Of fewer GPUs, and of shorter limits, only those that gain something over what asks for less change.
void KeepSteps(std::vector<Offer>* offers) {
  std::vector<Offer> kept;
  for (Offer& offer : *offers) {
    const bool stepwise =
        offer.instead.kind == Alternative::Kind::kFewer || offer.instead.kind == Alternative::Kind::kShorter;
    const bool in_vain = std::any_of(kept.begin(), kept.end(), [&](const Offer& other) {
      return stepwise && other.instead.kind == offer.instead.kind &&
             other.start.p50_s - offer.start.p50_s <= kWorthS;
    });
    if (!in_vain) kept.push_back(offer);
  }
  *offers = std::move(kept);
}

class Seer {
 public:
  Seer(const LiveQueue& queue, const RunTimes& times, const ForecastOptions& options, const Crew& crew)
      : replays_(queue, times, options.seed), options_(options), crew_(crew), rooms_(RoomsFor(crew)) {}

  Forecast See(int count) {
    Forecast forecast;
    const LiveQueue& queue = replays_.queue();
    const pooled::PoolJob& job = queue.jobs[queue.target].told;
    // What happens now is not a matter of chance.
    if (replays_.Start(job, 0, queue.now_s + 1, &rooms_[0]) == queue.now_s) {
      forecast.now = true, forecast.replays = 1;
      forecast.start = {queue.now_s, queue.now_s};
      return forecast;
    }
    // A first look tells how exact the others need be.
    const int64_t guess_s = count > 1 ? replays_.Start(job, 0, kNever, &rooms_[0]) : kNever;
    if (guess_s < kNever) replays_.SetGrain((guess_s - queue.now_s) / kGrainOfWait);
    std::vector<int64_t> starts(static_cast<size_t>(count));
    crew_.run(count, [&](int i, int worker) {
      starts[static_cast<size_t>(i)] = replays_.Start(job, static_cast<uint64_t>(i), kNever, RoomOf(worker));
    });
    forecast.replays = count;
    const std::vector<int64_t> first(starts.begin(), starts.begin() + std::min(count, options_.replays_each));
    forecast.start = TimesOf(&starts);
    LookForSooner(first, &forecast);
    return forecast;
  }

 private:
  // Compared future by future, with the same ones: `as_it_is` is what it gets in them as it is.
  void LookForSooner(const std::vector<int64_t>& as_it_is, Forecast* forecast) {
    if (as_it_is.empty()) return;
    const LiveQueue& queue = replays_.queue();
    std::vector<int64_t> sorted = as_it_is;
    const StartTimes than = TimesOf(&sorted);
    const std::vector<Alternative> all = AlternativesOf(queue, options_.partitions);
    std::vector<StartTimes> times(all.size());
    crew_.run(static_cast<int>(all.size()), [&](int i, int worker) {
      const auto at = static_cast<size_t>(i);
      times[at] = TimesInstead(all[at].asks, as_it_is, RoomOf(worker));
    });
    for (size_t i = 0; i < all.size(); ++i) {
      if (Better(times[i], than, queue.now_s) && times[i].p50_s < forecast->start.p50_s)
        forecast->sooner.push_back({all[i], times[i]});
    }
    KeepSteps(&forecast->sooner);
  }

  // What it would get asking for that. kNever: it would be later in more than one of ten futures, or the
  // first ones show that nothing is gained.
  StartTimes TimesInstead(const pooled::PoolJob& asks, const std::vector<int64_t>& as_it_is,
                          StartReplays::Room* room) const {
    const int64_t now_s = replays_.queue().now_s;
    if (replays_.Start(asks, 0, now_s + 1, room) == now_s) return {now_s, now_s};
    std::vector<int64_t> starts;
    size_t later = 0, sooner = 0;
    for (const int64_t than_s : as_it_is) {
      starts.push_back(replays_.Start(asks, starts.size(), std::min(kNever, than_s + 1), room));
      later += starts.back() > than_s;
      sooner += starts.back() < than_s;
      if (later > as_it_is.size() / 10) return {};
      if (starts.size() >= kGlance && sooner < starts.size() / kGlance) return {};
    }
    return TimesOf(&starts);
  }

  StartReplays::Room* RoomOf(int worker) { return &rooms_[static_cast<size_t>(worker)]; }

  StartReplays replays_;
  const ForecastOptions& options_;
  const Crew& crew_;
  std::vector<StartReplays::Room> rooms_;
};

}  // namespace

StartTimes TimesOf(std::vector<int64_t>* starts) {
  if (starts->empty()) return {};
  std::sort(starts->begin(), starts->end());
  const auto at = [&](size_t tenths) { return (*starts)[(starts->size() * tenths + 9) / 10 - 1]; };
  return {at(5), at(9)};
}

Crew OneThread() {
  return {1, [](int count, const std::function<void(int, int)>& work) {
            for (int i = 0; i < count; ++i) work(i, 0);
          }};
}

int ReplaysFor(const LiveQueue& queue, int wanted) {
  const int64_t bounded = kMostJobs / std::max<int64_t>(1, static_cast<int64_t>(queue.jobs.size()));
  return std::max(1, static_cast<int>(std::min<int64_t>(wanted, std::max<int64_t>(kFewestReplays, bounded))));
}

std::vector<PastRun> WithRunning(std::vector<PastRun> past, const LiveQueue& queue) {
  int64_t since_s = kNever;
  for (const PastRun& run : past) since_s = std::min(since_s, run.ended_us / 1'000'000 - run.run_s);
  for (const LiveJob& job : queue.jobs) {
    const int64_t ran_s = queue.now_s - job.started_s;
    if (!job.runs || ran_s <= 0 || job.started_s < since_s) continue;
    const int64_t limit_s = job.named_limit ? job.told.limit_s : 0;
    PastRun run{job.user, job.lab, job.partition, limit_s, ran_s, queue.now_s * 1'000'000};
    run.goes_on = true;
    past.push_back(std::move(run));
  }
  return past;
}

Forecast Foresee(const LiveQueue& queue, const RunTimes& times, const ForecastOptions& options,
                 const Crew& crew) {
  return Seer(queue, times, options, crew).See(ReplaysFor(queue, options.replays));
}

}  // namespace overcap::forecast
