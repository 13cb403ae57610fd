// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ctime>

#include "snapshot/repository/upkeep.h"

namespace overcap {
namespace {

// Snapshots with the same text are of the same period of local time.
std::string PeriodOf(int64_t time_us, const char* format) {
  const int64_t floor_seconds = time_us / 1'000'000 - (time_us % 1'000'000 < 0 ? 1 : 0);
  const auto seconds = static_cast<std::time_t>(floor_seconds);
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &local));
}

struct PeriodRule {
  const char* name;
  const char* format;
  int64_t count;
};

// The newest of each of the last `count` periods that have any. `kept` is oldest first.
void KeepPeriods(std::vector<KeptSnapshot>* kept, const PeriodRule& rule) {
  std::string period;
  int64_t left = rule.count;
  for (auto it = kept->rbegin(); it != kept->rend() && left > 0; ++it) {
    const std::string of = PeriodOf(ClockOf(it->snapshot.record), rule.format);
    if (it != kept->rbegin() && of == period) continue;
    period = of;
    it->reasons.push_back(rule.name);
    --left;
  }
}

}  // namespace

std::vector<KeptSnapshot> ApplyKeepRules(const std::vector<NamedSnapshot>& snapshots, const KeepRules& rules,
                                         int64_t now_us) {
  std::vector<KeptSnapshot> kept;
  for (const NamedSnapshot& snapshot : snapshots) kept.push_back({snapshot, {}});
  const auto size = static_cast<int64_t>(kept.size());
  const int64_t newest_us = kept.empty() ? now_us : std::min(now_us, ClockOf(kept.back().snapshot.record));
  for (int64_t i = 0; i < size; ++i) {
    KeptSnapshot& one = kept[static_cast<size_t>(i)];
    if (!rules.Any()) one.reasons.push_back("no rule");
    if (size - i <= rules.last) one.reasons.push_back("last");
    if (rules.within_seconds > 0 &&
        newest_us - ClockOf(one.snapshot.record) <= rules.within_seconds * 1'000'000) {
      one.reasons.push_back("within");
    }
  }
  for (const PeriodRule& rule :
       {PeriodRule{"hourly", "%Y-%m-%d %H %z", rules.hourly}, PeriodRule{"daily", "%Y-%m-%d", rules.daily},
        PeriodRule{"weekly", "%G-%V", rules.weekly}, PeriodRule{"monthly", "%Y-%m", rules.monthly},
        PeriodRule{"yearly", "%Y", rules.yearly}}) {
    KeepPeriods(&kept, rule);
  }
  if (!kept.empty() && kept.back().reasons.empty()) kept.back().reasons.push_back("newest");
  return kept;
}

}  // namespace overcap
