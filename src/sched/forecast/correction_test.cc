// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/correction.h"

#include <gtest/gtest.h>

namespace overcap::forecast {
namespace {

constexpr int64_t kHour = 3600;

// Foreseen were one hour and two; they waited as long as told.
std::vector<PastPromise> Waited(const std::vector<int64_t>& waits_s) {
  std::vector<PastPromise> past;
  for (const int64_t wait_s : waits_s) past.push_back({kHour, 2 * kHour, wait_s, true});
  return past;
}

TEST(Correction, FewPromisesCorrectNothing) {
  const Correction by = CorrectionFrom(Waited({9 * kHour, 9 * kHour, 9 * kHour}));
  EXPECT_EQ(by.promises, 0);
  EXPECT_EQ(Corrected({kHour, 2 * kHour}, 0, by), (StartTimes{kHour, 2 * kHour}));
}

TEST(Correction, WaitsThatWereThreeTimesAsLongStretchTheNextByNearlyThat) {
  const Correction by = CorrectionFrom(Waited(std::vector<int64_t>(100, 3 * kHour)));
  EXPECT_EQ(by.promises, 100);
  EXPECT_NEAR(by.p50, 3, 0.3);
  EXPECT_NEAR(by.p90, 1.5, 0.1);
  EXPECT_LT(CorrectionFrom(Waited(std::vector<int64_t>(8, 3 * kHour))).p50, 2) << "few are trusted half";
}

TEST(Correction, PromisesThatWereRightStayAsTheyAre) {
  std::vector<int64_t> waits;
  for (int64_t i = 1; i <= 100; ++i)
    waits.push_back(i <= 50 ? i * kHour / 50 : kHour + (i - 50) * kHour / 40);
  const Correction by = CorrectionFrom(Waited(waits));
  EXPECT_NEAR(by.p50, 1, 0.02);
  EXPECT_NEAR(by.p90, 1, 0.02);
}

TEST(Correction, ThoseThatStillWaitCountAsLongerThanYet) {
  std::vector<PastPromise> past = Waited(std::vector<int64_t>(60, kHour));
  for (int i = 0; i < 60; ++i) past.push_back({kHour, 2 * kHour, kHour / 2, false});
  const double open = CorrectionFrom(past).p50;
  for (PastPromise& one : past) one.started = true;
  EXPECT_LT(CorrectionFrom(past).p50, open);
}

TEST(Correction, P50IsNeverAfterP90AndNothingIsBeforeNow) {
  const StartTimes made = Corrected({1000 + kHour, 1000 + 2 * kHour}, 1000, {10, 0.001, 50});
  EXPECT_LE(made.p50_s, made.p90_s);
  EXPECT_GE(made.p50_s, 1000);
  EXPECT_EQ(Corrected({}, 1000, {2, 2, 50}), StartTimes{});
}

}  // namespace
}  // namespace overcap::forecast
