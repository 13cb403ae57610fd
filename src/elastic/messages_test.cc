// SPDX-License-Identifier: Apache-2.0
#include "elastic/messages.h"

#include <gtest/gtest.h>

#include "elastic/record.h"

namespace overcap::elastic {
namespace {

MemberReport Report() {
  MemberReport report;
  report.seq = 7;
  report.sent_us = 123'456'789'012;
  report.epoch = 3;
  report.state = RanksState::kRunning;
  report.port = 4242;
  report.leaving = true;
  report.step = 10;
  report.checkpoint = 8;
  report.slowest_rank = 2;
  report.slowest_step = 9;
  report.warned = true;
  report.failure = ElasticFailure{5, 137, 9, true, "failed", "killed \"hard\"", "line 1\nline 2"};
  return report;
}

OrderRun PlannedRun() {
  OrderRun run;
  run.epoch = 4;
  run.group_rank = 1;
  run.group_size = 2;
  run.first_rank = 4;
  run.world_size = 8;
  run.restarts = 2;
  run.master_addr = "10.0.0.1";
  run.master_port = 1234;
  run.took_us = 55;
  run.joined = {"a"};
  run.left = {"b", "c"};
  run.joined_count = 1;
  run.left_count = 2;
  run.why = "host 'b' was lost";
  run.steps_lost = 3;
  return run;
}

TEST(ElasticMessages, ComeBackAsTheyWere) {
  const JoinRequest join{1,          "1.0", "agent", "h\xff",
                         "10.0.0.2", 4,     2,       {{"command", "a 'b'"}, {"--nnodes", "1:2"}}};
  for (const ToLeader& message :
       {ToLeader(join), ToLeader(Report()), ToLeader(MemberBeat{9, 1'000'000'000'000})}) {
    const auto back = DecodeToLeader(Encode(message));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, message);
  }
  const LeaderAnswer answer{1, 2, 3, true, PlannedRun()};
  for (const ToMember& message :
       {ToMember(answer), ToMember(LeaderAnswer{1, 2, 3, false, OrderWait{"nodes"}}),
        ToMember(LeaderAnswer{1, 2, 3, false, OrderStop{4, true, true, "why"}}),
        ToMember(LeaderAnswer{1, 2, 3, false, OrderEnd{7, "m", "t"}}), ToMember(LeaderNod{5, 6}),
        ToMember(Refusal{ErrorCode::kConflict, "no"})}) {
    const auto back = DecodeToMember(Encode(message));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, message);
  }
}

TEST(ElasticMessages, WhatIsNoMessageIsRefused) {
  for (const char* frame :
       {"", "x", "J", "J{}", "J[]", "Hnull", "H{\"state\":\"asleep\"}",
        "H{\"port\":99999,\"state\":\"idle\"}", "h123", "J{\"agent\":\"a\",\"ranks\":0}",
        "J{\"agent\":\"a\",\"terms\":[[1,2]]}", "J{\"agent\":\"a\",\"terms\":[[\"x\"]]}"}) {
    EXPECT_FALSE(DecodeToLeader(frame)) << frame;
  }
  for (const char* frame : {"", "a", "A{}", "A{\"order\":\"dance\"}", "A{\"order\":\"run\"}",
                            "A{\"order\":\"run\",\"epoch\":1,\"group_rank\":2,\"group_size\":1}",
                            "A{\"order\":\"end\",\"status\":999}", "A{\"right_us\":-1,\"order\":\"wait\"}"}) {
    EXPECT_FALSE(DecodeToMember(frame)) << frame;
  }
}

TEST(ElasticRecordText, ComesBackAsItWasAndNothingElseDoes) {
  const ElasticRecord record{3, 9, 2, 4, "hash", ElasticRecord::Ended{5, "why"}};
  const auto back = ParseRecord(RecordJson(record));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, record);
  for (const char* text :
       {"", "{}", "{\"format\":2}", "{\"format\":1,\"epoch\":-1}", "{\"format\":1,\"ended\":7}"}) {
    EXPECT_FALSE(ParseRecord(text)) << text;
  }
}

}  // namespace
}  // namespace overcap::elastic
