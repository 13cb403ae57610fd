// SPDX-License-Identifier: Apache-2.0
#include "net/http/retry_policy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "net/http/retry_loop.h"

namespace overcap {
namespace {

TEST(RetryPolicy, TriesAgainOnlyWhatPasses) {
  for (const int status : {429, 500, 502, 503, 504}) EXPECT_TRUE(IsPassing(status)) << status;
  for (const int status : {200, 206, 301, 400, 403, 404, 409, 412, 416, 501})
    EXPECT_FALSE(IsPassing(status)) << status;
}

TEST(RetryPolicy, ReadsWhatAServerAsksFor) {
  EXPECT_EQ(RetryAfterUs("3"), 3'000'000);
  EXPECT_EQ(RetryAfterUs("0"), 0);
  for (const char* text : {"", "-1", "soon", "Fri, 31 Dec 1999 23:59:59 GMT", "99999999999"})
    EXPECT_FALSE(RetryAfterUs(text)) << text;
}

RC_GTEST_PROP(RetryPolicy, WaitsLongerEachTimeAndNeverTooLong, (uint64_t random)) {
  const RetryPolicy policy;
  for (int tries = 1; tries < 100; ++tries) {
    const auto wait = NextTryUs(policy, tries, 0, random, std::nullopt);
    RC_ASSERT(wait && *wait >= policy.first_wait_us / 2 && *wait <= policy.longest_wait_us);
    if (tries > 20) RC_ASSERT(*wait >= policy.longest_wait_us / 2);
  }
}

TEST(RetryPolicy, HeedsTheServerWithinReason) {
  const RetryPolicy policy;
  EXPECT_EQ(NextTryUs(policy, 1, 0, 0, 3'000'000), 3'000'000);
  EXPECT_EQ(NextTryUs(policy, 1, 0, 0, 3'600'000'000), policy.longest_wait_us);
  EXPECT_GE(*NextTryUs(policy, 1, 0, 0, 0), policy.first_wait_us / 2);
}

TEST(RetryPolicy, GivesUpAtTheDeadline) {
  const RetryPolicy policy;
  EXPECT_FALSE(NextTryUs(policy, 3, policy.deadline_us, 0, std::nullopt));
  EXPECT_TRUE(NextTryUs(policy, 3, policy.deadline_us / 2, 0, std::nullopt));
}

TEST(RetryLoop, WaitsAndGoesOnUntilItGivesUp) {
  FakeClock clock;
  SeededRandom random(1);
  int waits = 0;
  RetryLoop loop({}, clock, random, [&](int64_t us) {
    clock.Advance(us);
    ++waits;
  });
  while (loop.Again(std::nullopt)) {
  }
  EXPECT_GT(waits, 10);
  EXPECT_LE(clock.MonotonicUs() - 1'000'000, RetryPolicy().deadline_us);
}

}  // namespace
}  // namespace overcap
