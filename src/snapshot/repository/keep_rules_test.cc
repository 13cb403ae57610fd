// SPDX-License-Identifier: Apache-2.0
#include <ctime>
#include <gtest/gtest.h>

#include "snapshot/repository/upkeep.h"

namespace overcap {
namespace {

NamedSnapshot At(int year, int month, int day, int hour, int minute = 0) {
  std::tm local{};
  local.tm_year = year - 1900;
  local.tm_mon = month - 1;
  local.tm_mday = day;
  local.tm_hour = hour;
  local.tm_min = minute;
  local.tm_isdst = -1;
  NamedSnapshot snapshot;
  snapshot.key.time_us = static_cast<int64_t>(std::mktime(&local)) * 1'000'000;
  snapshot.record.time_us = snapshot.key.time_us;
  return snapshot;
}

// Which stay: 'k', 'g' for those that go, oldest first.
std::string Kept(const std::vector<NamedSnapshot>& snapshots, const KeepRules& rules) {
  const int64_t now = snapshots.empty() ? 0 : snapshots.back().key.time_us;
  std::string kept;
  for (const KeptSnapshot& one : ApplyKeepRules(snapshots, rules, now))
    kept += one.reasons.empty() ? 'g' : 'k';
  return kept;
}

TEST(KeepRules, TheLastOnesStay) {
  const std::vector<NamedSnapshot> three{At(2026, 1, 1, 1), At(2026, 1, 1, 2), At(2026, 1, 1, 3)};
  EXPECT_EQ(Kept(three, {.last = 2}), "gkk");
  EXPECT_EQ(Kept(three, {.last = 9}), "kkk");
}

TEST(KeepRules, WithoutRulesAllStayAndTheNewestAlwaysDoes) {
  const std::vector<NamedSnapshot> two{At(2026, 1, 1, 1), At(2026, 1, 1, 2)};
  EXPECT_EQ(Kept(two, {}), "kk");
  EXPECT_EQ(Kept({}, {.last = 1}), "");
  const std::vector<KeptSnapshot> kept = ApplyKeepRules(two, {.within_seconds = 1}, two[1].key.time_us * 2);
  EXPECT_EQ(kept[0].reasons, std::vector<std::string>{});
  EXPECT_EQ(kept[1].reasons, std::vector<std::string>{"within"});
  EXPECT_EQ(ApplyKeepRules(two, {.within_seconds = 1}, 0)[0].reasons, std::vector<std::string>{"within"});
}

TEST(KeepRules, OfEachPeriodTheNewestStays) {
  const std::vector<NamedSnapshot> days{At(2026, 3, 1, 8),  At(2026, 3, 1, 20), At(2026, 3, 2, 8),
                                        At(2026, 3, 2, 20), At(2026, 3, 4, 8),  At(2026, 3, 4, 9)};
  EXPECT_EQ(Kept(days, {.daily = 2}), "gggkgk") << "days without a snapshot do not count";
  EXPECT_EQ(Kept(days, {.daily = 9}), "gkgkgk");
  EXPECT_EQ(Kept(days, {.hourly = 2}), "ggggkk");
  EXPECT_EQ(Kept(days, {.monthly = 3}), "gggggk");
}

TEST(KeepRules, WeeksBeginOnMondaysAndYearsOnTheFirst) {
  const std::vector<NamedSnapshot> all{At(2025, 12, 28, 1), At(2025, 12, 29, 1), At(2026, 1, 4, 1),
                                       At(2026, 1, 5, 1)};
  EXPECT_EQ(Kept(all, {.weekly = 3}), "kgkk") << "the 29th of December 2025 is of the first week of 2026";
  EXPECT_EQ(Kept(all, {.yearly = 2}), "gkgk");
}

TEST(KeepRules, RulesAddUpAndSayWhy) {
  const std::vector<NamedSnapshot> all{At(2026, 3, 1, 8), At(2026, 3, 2, 8), At(2026, 3, 2, 9)};
  const std::vector<KeptSnapshot> kept =
      ApplyKeepRules(all, {.last = 1, .daily = 2, .within_seconds = 3'600}, all[2].key.time_us);
  EXPECT_EQ(kept[0].reasons, std::vector<std::string>{"daily"});
  EXPECT_EQ(kept[1].reasons, std::vector<std::string>{"within"});
  EXPECT_EQ(kept[2].reasons, (std::vector<std::string>{"last", "within", "daily"}));
}

}  // namespace
}  // namespace overcap
