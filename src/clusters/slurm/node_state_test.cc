// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/node_state.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(NodeState, NodesThatTakeJobsSoonerOrLater) {
  for (const char* word : {"idle", "mixed", "MIX", "alloc", "allocated", "completing", "idle~", "mixed-",
                           "planned", "idle#", "allocated+", "idle+cloud+powered_down", "mixed+planned"}) {
    EXPECT_TRUE(ReadNodeState(word).takes_jobs) << word;
  }
}

TEST(NodeState, NodesThatTakeNone) {
  for (const char* word :
       {"down", "down*", "drained", "drng", "idle+drain", "mixed+drain+not_responding", "idle*", "maint",
        "idle$", "reserved", "inval", "fail", "reboot^", "draining@", "future"}) {
    EXPECT_TRUE(ReadNodeState(word).known) << word;
    EXPECT_FALSE(ReadNodeState(word).takes_jobs) << word;
  }
}

TEST(NodeState, FlagsAreToldApart) {
  EXPECT_FALSE(ReadNodeState("down*").responding);
  EXPECT_TRUE(ReadNodeState("down*").down);
  EXPECT_TRUE(ReadNodeState("mixed+drain").draining);
  EXPECT_FALSE(ReadNodeState("mixed+drain").down);
  EXPECT_TRUE(ReadNodeState("idle~").asleep);
  EXPECT_TRUE(ReadNodeState("resv").reserved);
}

TEST(NodeState, AnUnknownBaseStateSaysNothingAndAnUnknownFlagChangesNothing) {
  EXPECT_FALSE(ReadNodeState("quantum").known);
  EXPECT_FALSE(ReadNodeState("").known);
  EXPECT_FALSE(ReadNodeState("+*").known);
  EXPECT_TRUE(ReadNodeState("idle+newflag").takes_jobs);
}

}  // namespace
}  // namespace overcap
