// SPDX-License-Identifier: Apache-2.0
// What agents of an elastic launch say to each other, what lies in etcd, what ranks leave: read or refused.
#include "control/elastic/rank_socket.h"
#include "elastic/messages.h"
#include "elastic/place.h"
#include "elastic/record.h"
#include "inputs.h"
#include "launch/rank_error.h"
#include "model/group_event.h"

namespace overcap::elastic {
namespace {

const std::vector<std::string> kElasticWords = {
    "null",    "true",    "-1",   "1e999",    "18446744073709551616", "[", "{", "\"\"", "run",
    "\"hex\"", "\\u0000", "\xff", "\"epoch\""};

TEST(ElasticFuzz, MessagesToTheLeaderAreReadOrRefused) {
  MemberReport report;
  report.failure = ElasticFailure{1, 2, 0, false, "failed", "m", "t"};
  const JoinRequest join{1, "1", "a", "h", "10.0.0.1", 2, -1, {{"command", "x"}}};
  ForEachInput(Mutator({Encode(ToLeader(report)), Encode(ToLeader(join)), Encode(ToLeader(MemberBeat{1, 2}))},
                       kElasticWords, 1)
                   .Gently(),
               [](const std::string& frame) {
                 const auto read = DecodeToLeader(frame);
                 if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
                 EXPECT_EQ(*DecodeToLeader(Encode(*read)), *read);
                 return true;
               });
}

TEST(ElasticFuzz, MessagesToAMemberAreReadOrRefused) {
  OrderRun run;
  run.epoch = 1;
  run.joined = {"a", "b"};
  ForEachInput(Mutator({Encode(ToMember(LeaderAnswer{1, 2, 3, true, run})),
                        Encode(ToMember(LeaderAnswer{1, 2, 3, false, OrderStop{1, true, true, "x"}})),
                        Encode(ToMember(LeaderAnswer{1, 2, 3, false, OrderEnd{1, "m", "t"}})),
                        Encode(ToMember(LeaderNod{1, 2}))},
                       kElasticWords, 2)
                   .Gently(),
               [](const std::string& frame) {
                 const auto read = DecodeToMember(frame);
                 if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
                 EXPECT_EQ(*DecodeToMember(Encode(*read)), *read);
                 return true;
               });
}

TEST(ElasticFuzz, RecordsAndPlacesAreReadOrRefused) {
  ForEachInput(
      Mutator({RecordJson({1, 2, 3, 4, "h", ElasticRecord::Ended{1, "m"}})}, kElasticWords, 3).Gently(),
      [](const std::string& text) {
        const auto read = ParseRecord(text);
        if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
        EXPECT_EQ(*ParseRecord(RecordJson(*read)), *read);
        return true;
      });
  ForEachInput(
      Mutator({"etcd://a:1,b:2/x", "tcp://[::1]:5/job", "auto:x"}, {"/", ":", ",", "@", "[", "]", "etcds://"},
              4),
      [](const std::string& text) {
        const auto read = ParseRendezvous(text);
        if (!read) return ExpectOneLine(read.error(), ErrorCode::kUsage);
        EXPECT_EQ(ParseRendezvous(read->Text())->Text(), read->Text());
        return true;
      },
      kFewUnderstood);
}

TEST(ElasticFuzz, EventsOfGroupsAreReadOrLeftOut) {
  ForEachInput(
      Mutator({R"({"e":"group","t":1,"event":"epoch","epoch":1,"left":["a"],"took_us":5,"why":"x"})"},
              {"\"epoch\"", "\"left\"", "[", "]", "-9223372036854775808", "null", "1e999"}, 7)
          .Gently(),
      [](const std::string& text) {
        const auto read = ParseGroupEvent(text);
        if (!read) return false;
        (void)GroupEventWords(*read);
        return !read->event.empty();
      },
      kFewUnderstood);
}

TEST(ElasticFuzz, WhatRanksSayAndLeaveIsReadOrRefused) {
  ForEachInput(
      Mutator({"H 1 2 3", "C 12 0 -1"}, {" ", "-", "99999999999999999999", "H", "C"}, 5),
      [](const std::string& text) {
        const auto read = RankSocket::Parse(text);
        return read ? read->epoch > 0 && read->step >= -1 : ExpectOneLine(read.error(), ErrorCode::kCorrupt);
      },
      kFewUnderstood);
  ForEachInput(
      Mutator({R"({"message":{"message":"E: x","extraInfo":{"py_callstack":"a\nb","timestamp":"1"}}})",
               R"({"message":"a\nb"})"},
              kElasticWords, 6)
          .Gently(),
      [](const std::string& text) {
        const RankError error = ParseErrorFile(text);
        return error.message.find('\n') == std::string::npos && error.message.size() <= 500;
      });
}

}  // namespace
}  // namespace overcap::elastic
