// SPDX-License-Identifier: Apache-2.0
#include "model/group_event.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(GroupEvent, AnEpochIsReadAndTold) {
  const auto event = ParseGroupEvent(
      R"({"e":"group","t":5,"attempt":2,"node":"n1","event":"epoch","epoch":3,"group_size":2,"world_size":8,)"
      R"("took_us":41000,"joined":[],"left":["n3"],"why":"node 'n3' was lost","steps_lost":1})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->time_us, 5);
  EXPECT_EQ(event->attempt, 2);
  EXPECT_EQ(GroupEventWords(*event),
            "epoch 3: 8 ranks on 2 nodes, formed in 41 ms, left: n3, 1 step lost; after: node 'n3' was lost");
}

TEST(GroupEvent, WhatIsNoneIsLeftOut) {
  for (const char* line : {"", "{", "[]", "{}", R"({"event":7})", R"({"event":"epoch","epoch":"x"})"}) {
    EXPECT_FALSE(ParseGroupEvent(line)) << line;
  }
}

}  // namespace
}  // namespace overcap
