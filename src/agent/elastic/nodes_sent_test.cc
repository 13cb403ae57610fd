// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/nodes_sent.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

TEST(NodesSent, EachNodeCountsOnceWhateverElseSrunSays) {
  EXPECT_EQ(CountSent(""), 0);
  EXPECT_EQ(CountSent(StrCat("srun: error: n2: task 1: Killed\n", SentLine(2), SentLine(1), SentLine(2))), 2);
  EXPECT_EQ(CountSent("overcap-sent 0\novercap-sent x\novercap-sent -1\nx overcap-sent 3\n"), 0);
}

TEST(NodesSent, TheLastGroupIsTheOneThatIsWaitedFor) {
  EXPECT_EQ(LastGroupSize(""), 0);
  EXPECT_EQ(LastGroupSize("{\"time_us\":1,\"event\":\"epoch\",\"epoch\":1,\"group_size\":3}\n"
                          "{\"time_us\":2,\"event\":\"epoch\",\"epoch\":2,\"group_size\":2}\n"
                          "{\"time_us\":3,\"event\":\"ended\",\"status\":0}\n{\"time_us\":4,\"ev"),
            2);
}

}  // namespace
}  // namespace overcap
