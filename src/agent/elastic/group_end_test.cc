// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/group_end.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "agent/elastic/node_command.h"
#include "agent/elastic/stored_node.h"

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

TEST(GroupEnd, AnAgentThatWasKilledWhenItHadToldAGoodEndIsASuccess) {
  EXPECT_EQ(EndingOf(NodeEnds{{ProcessEnd{137, 9}}, Ended(0, ""), false}).state, JobState::kSucceeded);
  EXPECT_EQ(EndingOf(NodeEnds{{ProcessEnd{137, 9}}, Ended(4, "rank 0 failed first"), false}).exit_status, 4);
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

TEST(NodeCommand, NodesThatBringTheCodeFirstAreWaitedForLonger) {
  JobSpec spec;
  spec.id = "u_1_00000001";
  spec.command = {"x"};
  NodeCommand command{spec, 1, 2, "/j", "/j/attempt-1", 10'000'000, "3s", 4'200'000};
  const std::vector<std::string> words = LaunchWords(command);
  const auto after = [&](const char* flag) { return *(std::find(words.begin(), words.end(), flag) + 1); };
  EXPECT_EQ(after("--join-timeout"), "8s");
  EXPECT_EQ(after("--last-call"), "35s");
}

TEST(NodeCommand, TheGroupsEventsAreTheAttemptsOwnWhereTheyGoThroughAStore) {
  JobSpec spec;
  const NodeCommand command{spec, 2, 2, "/j", "/j/attempt-2"};
  EXPECT_EQ(GroupEventsFile(command), "/j/events.jsonl");
  spec.store.at = "s3://b/x";
  EXPECT_EQ(GroupEventsFile(command), "/j/attempt-2/agent-0.group.jsonl");
}

TEST(StoredNode, ItsWordsAreReadAsTheyWereWritten) {
  AgentOptions options;
  options.id = "u_1234567890_00000001", options.node_folder = "/local", options.attempt = 3;
  options.via.at = "s3://b/x";
  std::vector<std::string> words = StoredNodeWords(options);
  words.insert(words.end(), {"launch", "--", "train"});
  const auto read = ParseStoredNodeWords(words);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->options.job_dir, "/local/jobs/u_1234567890_00000001");
  EXPECT_EQ(read->options.attempt, 3);
  EXPECT_EQ(read->options.via, options.via);
  EXPECT_EQ(read->launch, (std::vector<std::string>{"launch", "--", "train"}));
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{}, {"--"}, {"--", "rm"}, {"--attempt", "1", "--", "launch"}, {"launch"}})
    EXPECT_FALSE(ParseStoredNodeWords(bad));
}

}  // namespace
}  // namespace overcap
