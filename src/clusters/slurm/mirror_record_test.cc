// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/mirror_record.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kNow = 1'700'000'000 * kSecond;

MirrorHeader TextOf(int64_t age_s, int64_t took_s = 0) {
  return {"sky", "m1", kNow - age_s * kSecond, took_s * kSecond, 0, 0};
}
MirrorFailure FailureOf(int64_t age_s, int64_t took_s = 0) {
  return {"sky", kNow - age_s * kSecond, took_s * kSecond, {ErrorCode::kUnavailable, "no answer", ""}};
}

TEST(MirrorRecord, AnyTextComesBackByteForByte) {
  EXPECT_TRUE(rc::check([](const std::string& text, const std::string& of) {
    const std::string name = ToUtf8(of);
    const std::string file = MirrorHeaderLine({name, "mabc", kNow, 7, 0, 0}, text) + text;
    const auto header = ParseMirrorHeader(file, name);
    RC_ASSERT(header.has_value());
    RC_ASSERT(header->mark == "mabc" && header->taken_us == kNow && header->took_us == 7);
    RC_ASSERT(MirrorBody(file, *header) == text);
  }));
}

TEST(MirrorRecord, EveryCutOffFileIsNone) {
  const std::string file = MirrorHeaderLine({"sky", "m1", kNow, 7, 0, 0}, "1 a\n2 b\n") + "1 a\n2 b\n";
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string_view cut = std::string_view(file).substr(0, size);
    const auto header = ParseMirrorHeader(cut, "sky");
    EXPECT_FALSE(header && MirrorBody(cut, *header)) << size;
  }
}

TEST(MirrorRecord, AChangedByteOrOneMoreIsNone) {
  const std::string file = MirrorHeaderLine({"sky", "m1", kNow, 7, 0, 0}, "abc") + "abc";
  const auto header = ParseMirrorHeader(file, "sky");
  ASSERT_TRUE(header);
  EXPECT_TRUE(MirrorBody(file, *header));
  EXPECT_FALSE(MirrorBody(file + "d", *header));
  EXPECT_FALSE(MirrorBody(file.substr(0, file.size() - 1) + "d", *header));
}

TEST(MirrorRecord, WhatIsOfAnotherClusterOrNoneOfOursIsNone) {
  const std::string file = MirrorHeaderLine({"sky", "m1", kNow, 7, 0, 0}, "");
  EXPECT_TRUE(ParseMirrorHeader(file, "sky"));
  EXPECT_FALSE(ParseMirrorHeader(file, "sea"));
  for (const char* text :
       {"", "\n", "{}\n", "[]\n", "nonsense\n", "{\"overcap_mirror\":2,\"of\":\"sky\"}\n",
        "{\"overcap_mirror\":1,\"of\":\"sky\",\"mark\":1,\"taken_us\":1,\"took_us\":1,"
        "\"bytes\":0,\"crc32c\":\"00000000\"}\n",
        "{\"overcap_mirror\":1,\"of\":\"sky\",\"mark\":\"m\",\"taken_us\":-1,\"took_us\":1,"
        "\"bytes\":0,\"crc32c\":\"00000000\"}\n",
        "{\"overcap_mirror\":1,\"of\":\"sky\",\"mark\":\"m\",\"taken_us\":1e99,"
        "\"took_us\":1,\"bytes\":0,\"crc32c\":\"00000000\"}\n",
        "{\"overcap_mirror\":1,\"of\":\"sky\",\"mark\":\"m\",\"taken_us\":1,\"took_us\":"
        "9223372036854775807,\"bytes\":0,\"crc32c\":\"00000000\"}\n"}) {
    EXPECT_FALSE(ParseMirrorHeader(text, "sky")) << text;
    EXPECT_FALSE(ParseMirrorFailure(text, "sky")) << text;
  }
}

TEST(MirrorRecord, BytesAtRandomAreNoneAndHurtNobody) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    RC_ASSERT(!ParseMirrorHeader(bytes + "\n", "sky"));
    RC_ASSERT(!ParseMirrorFailure("{" + bytes + "}\n", "sky"));
  }));
}

TEST(MirrorRecord, AFailureComesBackWhole) {
  const std::string line = MirrorFailureLine({"sky", 5, 6, {ErrorCode::kDenied, "a 'b'\n", "type c"}});
  const auto failure = ParseMirrorFailure(line, "sky");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->tried_us, 5);
  EXPECT_EQ(failure->took_us, 6);
  EXPECT_EQ(failure->error.code, ErrorCode::kDenied);
  EXPECT_EQ(failure->error.message, "a 'b'\n");
  EXPECT_EQ(failure->error.hint, "type c");
  EXPECT_FALSE(ParseMirrorFailure(line.substr(0, line.size() - 1), "sky"));
}

TEST(MirrorRecord, ATextServesForTheShortestIntervalAtLeastAndForMaxAge) {
  const MirrorHeader young = TextOf(4), old = TextOf(5);
  EXPECT_TRUE(MirrorServes(kNow, &young, nullptr, {5 * kSecond, 0}));
  EXPECT_FALSE(MirrorServes(kNow, &old, nullptr, {5 * kSecond, 0}));
  EXPECT_TRUE(MirrorServes(kNow, &old, nullptr, {5 * kSecond, 6 * kSecond}));
  EXPECT_FALSE(MirrorServes(kNow, nullptr, nullptr, {5 * kSecond, 6 * kSecond}));
}

TEST(MirrorRecord, ASlowControllerIsAskedLessOften) {
  const MirrorHeader resting = TextOf(15, 8), rested = TextOf(16, 8), very_slow = TextOf(60, 300);
  EXPECT_TRUE(MirrorServes(kNow, &resting, nullptr, {5 * kSecond, 0}));
  EXPECT_FALSE(MirrorServes(kNow, &rested, nullptr, {5 * kSecond, 0}));
  EXPECT_FALSE(MirrorServes(kNow, &very_slow, nullptr, {5 * kSecond, 0}));
}

TEST(MirrorRecord, AFailureServesForTheIntervalAfterItsEnd) {
  const MirrorHeader old = TextOf(100);
  const MirrorFailure young = FailureOf(19, 15), over = FailureOf(20, 15), before = FailureOf(101);
  EXPECT_TRUE(MirrorServes(kNow, &old, &young, {5 * kSecond, 0}));
  EXPECT_TRUE(MirrorServes(kNow, nullptr, &young, {5 * kSecond, 0}));
  EXPECT_FALSE(MirrorServes(kNow, &old, &over, {5 * kSecond, 0}));
  EXPECT_TRUE(MirrorFailureCounts(kNow, &old, &over));
  EXPECT_FALSE(MirrorFailureCounts(kNow, &old, &before));
}

TEST(MirrorRecord, WhatComesFromTheFutureIsOld) {
  const MirrorHeader future = TextOf(-3600), skewed = TextOf(-1);
  const MirrorFailure later = FailureOf(-3600), now = FailureOf(0);
  EXPECT_FALSE(MirrorServes(kNow, &future, nullptr, {5 * kSecond, 10 * kSecond}));
  EXPECT_FALSE(MirrorServes(kNow, nullptr, &later, {5 * kSecond, 10 * kSecond}));
  EXPECT_TRUE(MirrorServes(kNow, &future, &now, {5 * kSecond, 0}));
  EXPECT_TRUE(MirrorServes(kNow, &skewed, nullptr, {5 * kSecond, 0}));
  EXPECT_FALSE(MirrorAge(kNow, kNow + 3600 * kSecond));
  EXPECT_EQ(MirrorAge(kNow, kNow + kSecond), 0);
}

}  // namespace
}  // namespace overcap
