// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_threads.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(RankThreads, AreTheRanksShareOfTheProcessorsThatItCanUse) {
  struct Case {
    const char* what;
    RankCpus cpus;
    int local_ranks, threads;
  };
  for (const Case& each : {
           Case{"ranks share what the job has", {8, 8}, 2, 4},
           Case{"a remainder stays unused", {8, 8}, 3, 2},
           Case{"at least one", {2, 2}, 16, 1},
           Case{"bound to a part by the launcher", {2, 8}, 2, 2},
           Case{"bound to a whole NUMA node that others use too", {16, 32}, 4, 8},
           Case{"a job that is not confined to its processors", {64, 8}, 4, 2},
           Case{"a container with a quota of two", {64, 2}, 2, 1},
           Case{"alone: OpenMP counts the same", {8, 8}, 1, 0},
           Case{"alone and bound by the launcher", {4, 8}, 1, 0},
           Case{"alone in a job that is not confined", {64, 8}, 1, 8},
           Case{"nothing is known of the processors", {0, 0}, 2, 1},
           Case{"nothing is known, and it is alone", {0, 0}, 1, 0},
           Case{"only the job's processors are known", {0, 8}, 2, 4},
           Case{"only the rank's own are known", {8, 0}, 2, 4},
       }) {
    EXPECT_EQ(RankThreads(each.cpus, each.local_ranks), each.threads) << each.what;
  }
}

TEST(RankThreads, StayAsTheUserSetThem) {
  Variables users({"OMP_NUM_THREADS=3"});
  SetThreads(4, &users);
  EXPECT_EQ(users.entries(), (std::vector<std::string>{"OMP_NUM_THREADS=3"}));
  EXPECT_FALSE(ThreadsAreOurs(users));
}

TEST(RankThreads, AreChosenAgainInALaunchWithinARank) {
  Variables outer;
  SetThreads(4, &outer);
  EXPECT_EQ(outer.Get("OMP_NUM_THREADS"), "4");
  EXPECT_TRUE(ThreadsAreOurs(outer));
  Variables inner = outer;
  SetThreads(2, &inner);
  EXPECT_EQ(inner.Get("OMP_NUM_THREADS"), "2");
  SetThreads(0, &inner);
  EXPECT_TRUE(inner.entries().empty());
  outer.Set("OMP_NUM_THREADS", "1");  // by a script in between
  SetThreads(2, &outer);
  EXPECT_EQ(outer.entries(), (std::vector<std::string>{"OMP_NUM_THREADS=1"}));
}

TEST(RankThreads, SlurmsWordBoundsTheProcessorsOfTheJob) {
  EXPECT_GE(JobCpusHere(Variables()), 1);
  EXPECT_EQ(JobCpusHere(Variables({"SLURM_CPUS_ON_NODE=1"})), 1);
  EXPECT_EQ(JobCpusHere(Variables({"SLURM_CPUS_ON_NODE=100000"})), JobCpusHere(Variables()));
}

}  // namespace
}  // namespace overcap
