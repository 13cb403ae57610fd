// SPDX-License-Identifier: Apache-2.0
// Records of locks: whatever stands there is read or refused, and what is read can be shown on a terminal.
#include <algorithm>

#include "inputs.h"
#include "stores/hashed_line.h"
#include "stores/lock_record.h"

namespace overcap {
namespace {

const std::vector<std::string> kWords = {"null",    "true",    "-1",   "1e999",    "18446744073709551616",
                                         "[",       "{",       "\"\"", "\"user\"", "\"held\"",
                                         "\\u0000", "\\u001b", "\xff", "\\u009b"};

std::string SampleJson() {
  LockRecord record;
  record.held = true;
  record.holder = std::string(32, 'a');
  record.user = "ann";
  record.host = "node07";
  record.pid = 4711;
  record.since_us = 1'800'000'000'000'000;
  record.lease_us = 30'000'000;
  record.turn = 12;
  const std::string whole = EncodeLockRecord(record);
  return whole.substr(0, whole.find('\n'));
}

bool ReadOrRefused(const std::string& bytes) {
  const auto read = DecodeLockRecord(bytes, "x.lock/1");
  if (!read) return ExpectOneLine(read.error(), ErrorCode::kCorrupt);
  EXPECT_EQ(DecodeLockRecord(EncodeLockRecord(*read), "x"), *read);
  const std::string shown = DescribeHolder(*read);
  EXPECT_TRUE(std::all_of(shown.begin(), shown.end(), [](char c) { return c >= ' ' && c <= '~'; })) << shown;
  return true;
}

TEST(LockFuzz, RecordsWithARightHashAreReadOrRefused) {
  ForEachInput(
      Mutator({SampleJson()}, kWords, 1).Gently(),
      [](const std::string& json) { return ReadOrRefused(WithHashLine(json)); }, kFewUnderstood);
}

TEST(LockFuzz, AnyBytesAreReadOrRefused) {
  ForEachInput(
      Mutator({WithHashLine(SampleJson())}, kWords, 2),
      [](const std::string& bytes) { return ReadOrRefused(bytes); }, 0);  // its hash is there to see changes
}

}  // namespace
}  // namespace overcap
