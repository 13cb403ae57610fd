// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/forecast.h"

#include <gtest/gtest.h>
#include <random>
#include <rapidcheck/gtest.h>

namespace overcap::forecast {
namespace {

using pooled::Bit;

constexpr int64_t kNow = 1'000'000;

// Two nodes with 8 a40 and one with 8 rtx_6000; labs with a cap of 8; short counts, overcap does not.
LiveQueue Pool() {
  LiveQueue queue;
  queue.now_s = kNow;
  queue.rules.types = {"a40", "rtx_6000"};
  for (const int type : {0, 0, 1}) {
    pooled::NodeRule node;
    node.type = type, node.gpus = 8, node.cpus = 64, node.mem_mb = 1 << 20;
    queue.rules.nodes.push_back(node);
  }
  queue.rules.labs = {{"vision", 8}, {"nlp", 8}};
  pooled::PartitionRule in_cap, over;
  in_cap.name = "short", in_cap.priority = 10, in_cap.preempts = Bit(1);
  over.name = "overcap", over.counts = false;
  queue.rules.partitions = {in_cap, over};
  queue.rules.weights = {0, 0, 0, 0, 0, 0, 1};
  queue.accounts = {{0, 0, {}}, {1, 1, {}}};
  return queue;
}

LiveJob& Add(LiveQueue* queue, int lab, int gpus, int64_t limit_s) {
  LiveJob job;
  job.told.key = job.told.seq = queue->jobs.size();
  job.told.account = lab, job.told.need.gpus = gpus, job.told.need.cpus = gpus, job.told.limit_s = limit_s;
  job.user = lab == 0 ? "ann" : "bob", job.lab = lab == 0 ? "vision" : "nlp", job.partition = "short";
  queue->jobs.push_back(job);
  return queue->jobs.back();
}

void Occupy(LiveQueue* queue, int lab, int node, int gpus, int64_t started_s, int64_t limit_s, int in = 0) {
  LiveJob& job = Add(queue, lab, gpus, limit_s);
  uint64_t used = 0;
  for (const LiveJob& other : queue->jobs) {
    for (const pooled::GpuShare& share : other.shares) used |= share.node == node ? share.gpus : 0;
  }
  job.runs = true, job.in = in, job.started_s = started_s;
  job.shares = {{node, pooled::NodeTable::Lowest(~used, gpus)}};
}

size_t Wait(LiveQueue* queue, int lab, int gpus, int64_t limit_s) {
  Add(queue, lab, gpus, limit_s);
  return queue->target = queue->jobs.size() - 1;
}

Forecast See(const LiveQueue& queue, const std::vector<PastRun>& past = {}, uint64_t seed = 1,
             int replays = 100) {
  const RunTimes times(past);
  return Foresee(queue, times, {seed, replays, 16, ~uint64_t{0}}, OneThread());
}

std::vector<PastRun> Past(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<PastRun> past;
  for (int i = 0; i < 200; ++i) {
    const bool ann = i % 2 == 0;
    past.push_back({ann ? "ann" : "bob", ann ? "vision" : "nlp", "short", 3600,
                    60 + static_cast<int64_t>(random() % 3500), i});
  }
  return past;
}

// A busy pool with jobs in the queue, from a seed; the target is one of those.
LiveQueue Busy(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t limit) { return static_cast<int>(random() % limit); };
  LiveQueue queue = Pool();
  for (int node = 0; node < 3; ++node) {
    for (int left = 8; left > 0;) {
      const int gpus = std::min(left, 1 << below(4));
      Occupy(&queue, below(2), node, gpus, kNow - below(3000), 3600, below(3) == 0 ? 0 : 1);
      left -= gpus;
    }
  }
  const int waiting = 3 + below(12);
  for (int i = 0; i < waiting; ++i) {
    LiveJob& job = Add(&queue, below(2), 1 << below(4), 600 + below(6000));
    job.told.partitions = static_cast<uint64_t>(1 + below(3));
    if (below(3) == 0) job.told.need.types = Bit(below(2));
  }
  queue.target = queue.jobs.size() - 1 - static_cast<size_t>(below(static_cast<uint64_t>(waiting)));
  return queue;
}

TEST(Forecast, AJobThatFitsStartsNow) {
  LiveQueue queue = Pool();
  Wait(&queue, 0, 4, 3600);
  const Forecast told = See(queue);
  EXPECT_TRUE(told.now);
  EXPECT_EQ(told.start, (StartTimes{kNow, kNow}));
  EXPECT_TRUE(told.sooner.empty());
}

TEST(Forecast, WithoutHistoryTheLimitsSayWhen) {
  LiveQueue queue = Pool();
  for (int node = 0; node < 3; ++node) Occupy(&queue, 1, node, 8, kNow - 600 * (node + 1), 3600);
  Wait(&queue, 0, 8, 3600);
  const Forecast told = See(queue);
  EXPECT_FALSE(told.now);
  EXPECT_NEAR(static_cast<double>(told.start.p50_s), kNow + 1800, 60);
  EXPECT_EQ(told.start.p50_s, told.start.p90_s);
}

TEST(Forecast, HistoryMakesItEarlierAndLessCertain) {
  LiveQueue queue = Pool();
  for (int node = 0; node < 3; ++node) Occupy(&queue, 1, node, 8, kNow - 60, 3600);
  Wait(&queue, 0, 8, 3600);
  const Forecast told = See(queue, Past(3), 1, 200);
  EXPECT_LT(told.start.p50_s, kNow + 2500);
  EXPECT_LT(told.start.p50_s, told.start.p90_s);
}

TEST(Forecast, TheCapOfTheLabIsWaitedForAndOvercapOfferedInstead) {
  LiveQueue queue = Pool();
  Occupy(&queue, 0, 0, 8, kNow - 600, 3600);
  Wait(&queue, 0, 4, 3600);
  const Forecast told = See(queue);
  EXPECT_NEAR(static_cast<double>(told.start.p50_s), kNow + 3000, 60);
  ASSERT_FALSE(told.sooner.empty());
  EXPECT_EQ(told.sooner[0].instead.kind, Alternative::Kind::kPartition);
  EXPECT_EQ(told.sooner[0].instead.partition, 1);
  EXPECT_EQ(told.sooner[0].start.p50_s, kNow);
}

TEST(Forecast, AnotherTypeAndFewerGpusAreOfferedWhenTheyStartSooner) {
  LiveQueue queue = Pool();
  Occupy(&queue, 1, 0, 8, kNow - 600, 3600);
  Occupy(&queue, 1, 1, 4, kNow - 600, 7200);
  queue.jobs[queue.target = Wait(&queue, 0, 8, 3600)].told.need.types = Bit(0);
  const Forecast told = See(queue);
  bool fewer = false, type = false;
  for (const Offer& offer : told.sooner) {
    EXPECT_LT(offer.start.p50_s, told.start.p50_s);
    fewer = fewer || (offer.instead.kind == Alternative::Kind::kFewer && offer.instead.gpus == 4);
    type = type || (offer.instead.kind == Alternative::Kind::kType && offer.instead.type == 1);
  }
  EXPECT_TRUE(fewer);
  EXPECT_TRUE(type);
}

TEST(Forecast, BehindARunThatNobodyKnowsTheEndOfThereIsNoTime) {
  LiveQueue queue = Pool();
  for (int node = 0; node < 3; ++node) Occupy(&queue, 1, node, 8, kNow - 60, 0);
  Wait(&queue, 0, 8, 3600);
  const Forecast told = See(queue);
  EXPECT_EQ(told.start, StartTimes{});
}

TEST(Forecast, VictimsOfPreemptionGoOnLater) {
  LiveQueue queue = Pool();
  for (int node = 0; node < 3; ++node) Occupy(&queue, 1, node, 8, kNow - 60, 3600, 1);
  queue.rules.partitions[1].grace_s = 120;
  Wait(&queue, 0, 8, 3600);
  EXPECT_EQ(See(queue).start, (StartTimes{kNow + 120, kNow + 120}));
}

RC_GTEST_PROP(Forecast, TheSameSeedGivesTheSameAnswerWhoeverComputesIt, ()) {
  const LiveQueue queue = Busy(*rc::gen::inRange<uint64_t>(0, 10'000));
  const RunTimes times(Past(7));
  const ForecastOptions options{*rc::gen::inRange<uint64_t>(0, 100), 40, 8, ~uint64_t{0}};
  // Backwards, in three rooms by turns: as threads might.
  const Crew crew{3, [](int count, const std::function<void(int, int)>& work) {
                    for (int i = count - 1; i >= 0; --i) work(i, i % 3);
                  }};
  const Forecast one = Foresee(queue, times, options, OneThread()),
                 other = Foresee(queue, times, options, crew);
  RC_ASSERT(one.start == other.start);
  RC_ASSERT(one.sooner.size() == other.sooner.size());
  for (size_t i = 0; i < one.sooner.size(); ++i) RC_ASSERT(one.sooner[i].start == other.sooner[i].start);
}

RC_GTEST_PROP(Forecast, NothingIsOfferedThatIsNoSooner, ()) {
  const LiveQueue queue = Busy(*rc::gen::inRange<uint64_t>(0, 10'000));
  const Forecast told = See(queue, Past(9), 1, 40);
  RC_ASSERT(told.start.p50_s <= told.start.p90_s);
  RC_ASSERT(told.start.p50_s >= queue.now_s);
  for (const Offer& offer : told.sooner) {
    RC_ASSERT(offer.start.p50_s < told.start.p50_s);
    RC_ASSERT(offer.start.p50_s <= offer.start.p90_s);
  }
  if (told.now) RC_ASSERT(told.sooner.empty());
}

TEST(Forecast, MoreReplaysComeNearerToEachOther) {
  double few = 0, many = 0;
  for (uint64_t at = 1; at <= 6; ++at) {
    const LiveQueue queue = Busy(at);
    const auto spread = [&](int replays) {
      const auto one = See(queue, Past(5), 11, replays).start,
                 other = See(queue, Past(5), 7'777, replays).start;
      return std::abs(static_cast<double>(one.p50_s - other.p50_s));
    };
    few += spread(8), many += spread(400);
  }
  EXPECT_LT(many, few + 1);
  EXPECT_LT(many, 6 * 400) << "seconds, of waits of about an hour";
}

}  // namespace
}  // namespace overcap::forecast
