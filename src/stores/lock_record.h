// SPDX-License-Identifier: Apache-2.0
// What a lock in a store says of its holder (docs/formats/locks.md). Pure; the parser takes any bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

constexpr int64_t kLongestLeaseUs = 60'000'000;
constexpr int64_t kLockRecordMost = 4096;  // bytes; a longer one counts as damaged

struct LockRecord {
  bool held = false;
  std::string holder;      // 32 hex digits, others each time a lock is taken
  std::string user, host;  // of printable ASCII; "": not known
  int64_t pid = 0;
  int64_t since_us = 0;  // wall time of the holder, for people
  int64_t lease_us = 0;
  int64_t turn = 0;  // larger than that of everybody before

  bool operator==(const LockRecord&) const = default;
};

// One of this process, that says who it is: held, of no turn yet.
LockRecord OwnLockRecord(int64_t lease_us, int64_t now_us);

std::string EncodeLockRecord(const LockRecord& record);
// `key` is for messages. kCorrupt for anything that is none.
Result<LockRecord> DecodeLockRecord(std::string_view bytes, std::string_view key);

// "ann@node07, pid 4711, since 2026-11-15 14:45:02"; "somebody who does not say who" when nothing is known.
std::string DescribeHolder(const LockRecord& record);

}  // namespace overcap
