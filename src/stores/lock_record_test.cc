// SPDX-License-Identifier: Apache-2.0
#include "stores/lock_record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"
#include "stores/hashed_line.h"

namespace overcap {
namespace {

LockRecord Sample() {
  LockRecord record;
  record.held = true;
  record.holder = std::string(32, 'a');
  record.user = "ann";
  record.host = "node07";
  record.pid = 4711;
  record.since_us = 1'800'000'000'000'000;
  record.lease_us = 30'000'000;
  record.turn = 12;
  return record;
}

TEST(LockRecord, ComesBackAsItWasWritten) {
  LockRecord record = Sample();
  EXPECT_EQ(*DecodeLockRecord(EncodeLockRecord(record), "x"), record);
  record.held = false;
  EXPECT_EQ(*DecodeLockRecord(EncodeLockRecord(record), "x"), record);
}

TEST(LockRecord, SaysWhoThisIs) {
  const LockRecord own = OwnLockRecord(15'000'000, 1'800'000'000'000'000);
  EXPECT_TRUE(own.held);
  EXPECT_EQ(own.pid, getpid());
  EXPECT_EQ(*DecodeLockRecord(EncodeLockRecord(own), "x"), own);
  EXPECT_NE(own.holder, OwnLockRecord(15'000'000, 0).holder);
  EXPECT_TRUE(DescribeHolder(Sample()).starts_with("ann@node07, pid 4711, since 20"));
  EXPECT_EQ(DescribeHolder({}), "somebody who does not say who");
}

TEST(LockRecord, DamageIsSeen) {
  std::string bytes = EncodeLockRecord(Sample());
  const auto flipped = [&](size_t at) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 1);
    return other;
  };
  for (size_t at = 0; at < bytes.size(); ++at) EXPECT_FALSE(DecodeLockRecord(flipped(at), "x")) << at;
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(DecodeLockRecord(bytes.substr(0, size), "x")) << size;
  const auto error = DecodeLockRecord(bytes + "x", "locks/train.lock/1");
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(error.error().message, "the lock 'locks/train.lock/1' is damaged");
}

// Whoever can write there can make a right hash as well.
TEST(LockRecord, TextsThatWouldReachATerminalAreRefused) {
  const auto with = [](const std::string& name, const std::string& value) {
    std::string json = EncodeLockRecord(Sample());
    json.resize(json.find('\n'));
    const size_t at = json.find(StrCat("\"", name, "\":")) + name.size() + 3;
    json.replace(at, json.find_first_of(",}", at) - at, value);
    return DecodeLockRecord(WithHashLine(json), "x").has_value();
  };
  EXPECT_TRUE(with("user", "\"bob\""));
  for (const char* user : {"\"\"", "7", "null", "\"a b\"", "\"\\u001b[2J\"", "\"\\n\"", "\"\\u009b\""})
    EXPECT_FALSE(with("user", user)) << user;
  EXPECT_FALSE(with("host", StrCat("\"", std::string(256, 'h'), "\"")));
  EXPECT_FALSE(with("holder", "\"short\""));
  for (const char* lease : {"0", "-1", "3600000001", "1.5", "99999999999999999999", "18446744073709551615"})
    EXPECT_FALSE(with("lease_us", lease)) << lease;
  EXPECT_FALSE(with("since_us", "9223372036854775807"));
  EXPECT_FALSE(with("format", "2"));
  EXPECT_FALSE(with("held", "1"));
}

}  // namespace
}  // namespace overcap
