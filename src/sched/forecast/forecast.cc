// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/forecast.h"

#include <algorithm>

namespace overcap::forecast {
namespace {

constexpr int64_t kWorthS = 60;         // what is sooner by less is not told
constexpr int64_t kMostJobs = 800'000;  // of all replays together
constexpr int kFewestReplays = 20;
constexpr int kGlance = 4;  // replays that tell whether an alternative may be any better

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
    if (!in_vain) kept.push_back(std::move(offer));
  }
  *offers = std::move(kept);
}

class Seer {
 public:
  Seer(const StartReplays& replays, const ForecastOptions& options, const Crew& crew)
      : replays_(replays), options_(options), crew_(crew), rooms_(RoomsFor(crew)) {}

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
  // Compared future by future, with the same ones: `than` is what it gets in them as it is. Few of them tell
  // which alternatives are worth a closer look.
  void LookForSooner(const std::vector<int64_t>& as_it_is, Forecast* forecast) {
    if (as_it_is.empty()) return;
    const LiveQueue& queue = replays_.queue();
    std::vector<Alternative> all = AlternativesOf(queue, options_.partitions);
    const int each = static_cast<int>(as_it_is.size()), few = std::min(each, kGlance);
    std::vector<StartTimes> times = TimesWith(all, few, FirstOf(as_it_is, few));
    std::vector<Alternative> better;
    for (size_t i = 0; i < all.size(); ++i) {
      if (times[i].p50_s < FirstOf(as_it_is, few).p50_s) better.push_back(all[i]);
    }
    const StartTimes than = FirstOf(as_it_is, each);
    times = TimesWith(better, each, than);
    for (size_t i = 0; i < better.size(); ++i) {
      if (Better(times[i], than, queue.now_s) && times[i].p50_s < forecast->start.p50_s)
        forecast->sooner.push_back({better[i], times[i]});
    }
    KeepSteps(&forecast->sooner);
  }

  static StartTimes FirstOf(const std::vector<int64_t>& starts, int count) {
    std::vector<int64_t> first(starts.begin(), starts.begin() + count);
    return TimesOf(&first);
  }

  // What each would get in the first `count` futures; later than the P90 of `than` is never.
  std::vector<StartTimes> TimesWith(const std::vector<Alternative>& all, int count, const StartTimes& than) {
    const LiveQueue& queue = replays_.queue();
    std::vector<char> now(all.size(), 0);
    crew_.run(static_cast<int>(all.size()), [&](int i, int worker) {
      now[static_cast<size_t>(i)] =
          replays_.Start(all[static_cast<size_t>(i)].asks, 0, queue.now_s + 1, RoomOf(worker)) == queue.now_s;
    });
    std::vector<int64_t> starts(all.size() * static_cast<size_t>(count));
    crew_.run(static_cast<int>(starts.size()), [&](int i, int worker) {
      const size_t which = static_cast<size_t>(i) / static_cast<size_t>(count);
      const auto future = static_cast<uint64_t>(i % count);
      starts[static_cast<size_t>(i)] =
          now[which] != 0
              ? queue.now_s
              : replays_.Start(all[which].asks, future, std::min(kNever, than.p90_s + 1), RoomOf(worker));
    });
    std::vector<StartTimes> times;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto from = starts.begin() + static_cast<std::ptrdiff_t>(i * static_cast<size_t>(count));
      std::vector<int64_t> own(from, from + count);
      times.push_back(TimesOf(&own));
    }
    return times;
  }

  StartReplays::Room* RoomOf(int worker) { return &rooms_[static_cast<size_t>(worker)]; }

  const StartReplays& replays_;
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

Forecast Foresee(const LiveQueue& queue, const RunTimes& times, const ForecastOptions& options,
                 const Crew& crew) {
  const StartReplays replays(queue, times, options.seed);
  return Seer(replays, options, crew).See(ReplaysFor(queue, options.replays));
}

}  // namespace overcap::forecast
