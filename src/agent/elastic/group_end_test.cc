// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/group_end.h"

#include <gtest/gtest.h>

#include "agent/elastic/node_command.h"

namespace overcap {
namespace {

GroupEvent Ended(int status, const char* message) {
  GroupEvent event;
  event.event = "ended";
  event.status = status;
  event.message = message;
  return event;
}

TEST(GroupEnd, OneAgentThatEndedWellIsASuccessWhateverBecameOfTheOthers) {
  EXPECT_EQ(EndingOf(NodeEnds{{ProcessEnd{137, 9}, ProcessEnd{0, 0}}, {}, false}).state,
            JobState::kSucceeded);
}

TEST(GroupEnd, AFailureIsToldAsTheGroupToldIt) {
  const Ending ending =
      EndingOf(NodeEnds{{ProcessEnd{9, 0}}, Ended(9, "rank 1 on 'n2' failed first: exit status 9"), false});
  EXPECT_EQ(ending.state, JobState::kFailed);
  EXPECT_EQ(ending.exit_status, 9);
  EXPECT_EQ(ending.reason, "rank 1 on 'n2' failed first: exit status 9");
}

TEST(GroupEnd, TooFewNodesIsALossThatMayBeRequeued) {
  const Ending ending =
      EndingOf(NodeEnds{{ProcessEnd{5, 0}}, Ended(5, "only 1 of at least 2 nodes were there"), false});
  EXPECT_EQ(ending.state, JobState::kLost);
  EXPECT_EQ(EndingOf(NodeEnds{{ProcessEnd{5, 0}}, Ended(5, "rank 0 on 'n1' failed first"), false}).state,
            JobState::kFailed);
}

TEST(GroupEnd, WhoWasToldToStopIsCancelledUnlessItHadSucceeded) {
  EXPECT_EQ(EndingOf(NodeEnds{{ProcessEnd{143, 0}}, {}, true}).state, JobState::kCancelled);
  EXPECT_EQ(EndingOf(NodeEnds{{ProcessEnd{0, 0}}, {}, true}).state, JobState::kSucceeded);
}

TEST(GroupEnd, AnAgentThatWasKilledIsNamed) {
  const Ending ending = EndingOf(NodeEnds{{ProcessEnd{137, 9}}, {}, false});
  EXPECT_EQ(ending.state, JobState::kFailed);
  EXPECT_EQ(ending.reason, "the agent of node 0 was killed by signal 9");
}

TEST(NodeCommand, EachNodeHasItsPlaceAndItsShare) {
  JobSpec spec;
  spec.id = "u_1_00000001";
  spec.command = {"train.py", "--lr", "1"};
  spec.resources.nodes = 2, spec.resources.max_nodes = 8, spec.resources.ranks_per_node = 4;
  const std::vector<std::string> words =
      WordsOfNode(LaunchWords({spec, 3, 5, "/j", "/j/attempt-3", 10'000'000}), "/j/attempt-3", 1);
  const std::vector<std::string> begin(words.begin(), words.begin() + 7);
  EXPECT_EQ(begin, (std::vector<std::string>{"launch", "--node-rank", "1", "--logs", "/j/attempt-3/node-1",
                                             "--nnodes", "2:5"}));
  EXPECT_EQ(words.back(), "1");
  EXPECT_NE(std::find(words.begin(), words.end(), "auto:u_1_00000001.3"), words.end());
  EXPECT_EQ(JoinTimeoutOf(std::string_view("A=1\0OVERCAP_JOIN_TIMEOUT=3s\0", 29)), "3s");
  EXPECT_EQ(JoinTimeoutOf(""), "");
  EXPECT_NE(std::find(words.begin(), words.end(), "2m"), words.end());
  EXPECT_EQ(ShareOf({0, 1, 4, 5}, 2, 1), (std::vector<int>{4, 5}));
  EXPECT_EQ(ShareOf({}, 3, 2), std::vector<int>{});
}

}  // namespace
}  // namespace overcap
