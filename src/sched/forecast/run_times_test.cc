// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/run_times.h"

#include <gtest/gtest.h>

namespace overcap::forecast {
namespace {

std::vector<PastRun> Runs(const std::string& user, const std::string& lab, int count, int64_t run_s,
                          int64_t limit_s) {
  return std::vector<PastRun>(static_cast<size_t>(count), {user, lab, "short", limit_s, run_s, 1});
}

double MeanOf(const RunTime& time, int draws = 4000) {
  double sum = 0;
  for (int i = 0; i < draws; ++i) sum += static_cast<double>(time.Draw(Mixed(5, static_cast<uint64_t>(i))));
  return sum / draws;
}

TEST(RunTimes, WithoutHistoryARunTakesItsLimit) {
  const RunTimes times({});
  EXPECT_EQ(times.Of({"ann", "vision", "short", 3600, 0}).Draw(77), 3600);
  EXPECT_EQ(times.Of({"ann", "vision", "short", 3600, 5000}).Draw(77), 5001) << "past its limit: it ends now";
}

TEST(RunTimes, WithoutHistoryAndLimitNobodyKnows) {
  EXPECT_EQ(RunTimes({}).Of({"ann", "", "", 0, 10}).Draw(1), kNever);
}

TEST(RunTimes, AUserWithManyRunsIsTakenByThem) {
  auto runs = Runs("ann", "vision", 100, 360, 3600);
  for (const PastRun& run : Runs("bob", "nlp", 100, 3600, 3600)) runs.push_back(run);
  const RunTimes times(runs);
  EXPECT_NEAR(MeanOf(times.Of({"ann", "vision", "short", 36000, 0})), 3600, 800) << "a tenth of the limit";
  EXPECT_NEAR(MeanOf(times.Of({"bob", "nlp", "short", 36000, 0})), 36000, 2000);
}

// A job that names no time limit has its partition's, of which runs use no typical part.
TEST(RunTimes, AJobThatNamesNoLimitIsDrawnInSecondsAndEndsAtThatOfItsPartition) {
  auto runs = Runs("ann", "vision", 100, 360, 0);
  for (const PastRun& run : Runs("ann", "vision", 100, 360, 3600)) runs.push_back(run);
  const RunTimes times(runs);
  EXPECT_NEAR(MeanOf(times.Of({"ann", "vision", "short", 172800, 0, false})), 360, 1000);
  EXPECT_EQ(times.Of({"ann", "vision", "short", 172800, 0, false}).Draw(7), 360);
  EXPECT_GT(times.Of({"ann", "vision", "short", 172800, 300, false}).Draw(7), 300);
  EXPECT_EQ(times.Of({"ann", "vision", "short", 60, 0, false}).Draw(7), 60);
  EXPECT_NEAR(MeanOf(times.Of({"ann", "vision", "short", 36000, 0})), 3600, 800)
      << "a tenth of what it names";
}

TEST(RunTimes, RunsThatNamedNoLimitTellNothingToAJobThatNamesOne) {
  EXPECT_EQ(RunTimes(Runs("ann", "vision", 100, 360, 0)).Of({"ann", "vision", "short", 3600, 0}).Draw(7),
            3600);
}

TEST(RunTimes, AUserWithFewRunsIsTakenByTheLabAsWell) {
  auto runs = Runs("ann", "vision", 1, 3600, 3600);
  for (const PastRun& run : Runs("bob", "vision", 200, 360, 3600)) runs.push_back(run);
  const double mean = MeanOf(RunTimes(runs).Of({"ann", "vision", "short", 3600, 0}));
  EXPECT_GT(mean, 500);
  EXPECT_LT(mean, 1500);
}

TEST(RunTimes, ARunIsNeverShorterThanItHasBeenAlready) {
  auto runs = Runs("ann", "vision", 50, 360, 3600);
  for (const PastRun& run : Runs("ann", "vision", 50, 1800, 3600)) runs.push_back(run);
  const RunTimes times(runs);
  const RunTime time = times.Of({"ann", "vision", "short", 3600, 600});
  for (uint64_t i = 0; i < 500; ++i) EXPECT_GT(time.Draw(Mixed(1, i)), 600);
  EXPECT_NEAR(MeanOf(time), 1800, 120);
}

TEST(RunTimes, RunsWithoutALimitAreDrawnInSeconds) {
  const RunTimes times(Runs("ann", "", 60, 500, 0));
  EXPECT_NEAR(MeanOf(times.Of({"ann", "", "", 0, 0})), 500, 60);
  EXPECT_EQ(times.Of({"ann", "", "", 0, 700}).Draw(3), 1400) << "longer than any: as long again";
}

TEST(RunTimes, RunsThatGoOnCountAsLongerThanTheyAreYet) {
  std::vector<PastRun> runs;
  for (int i = 0; i < 50; ++i) runs.push_back({"ann", "", "", 10'000, 1000, i});
  for (int i = 0; i < 20; ++i) runs.push_back({"ann", "", "", 10'000, 8000, i});
  const auto mean = [](const RunTimes& times) {
    double sum = 0;
    for (uint64_t i = 0; i < 2000; ++i)
      sum += static_cast<double>(times.Of({"ann", "", "", 10'000, 0}).Draw(Mixed(i, 1)));
    return sum / 2000;
  };
  const double ended = mean(RunTimes(runs));
  for (int i = 0; i < 30; ++i) {
    runs.push_back({"ann", "", "", 10'000, 2000, i});
    runs.back().goes_on = true;
  }
  const RunTimes with(runs);
  EXPECT_GT(mean(with), ended + 1000) << "they can only end as those did that took longer";
  EXPECT_EQ(with.RunsOf("ann"), 70U) << "those that are over";
}

}  // namespace
}  // namespace overcap::forecast
