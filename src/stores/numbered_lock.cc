// SPDX-License-Identifier: Apache-2.0
#include "stores/numbered_lock.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kDigits = 16;
constexpr int64_t kMostNumber = 9'999'999'999'999'990;
constexpr int kReadTries = 20;  // the highest may go while it is read, because there is a higher one
constexpr int kReleaseTries = 3;

// 0: none.
int64_t NumberOf(std::string_view name) {
  const auto number = name.size() == kDigits ? ParseInt(name) : std::nullopt;
  return number && *number > 0 && *number <= kMostNumber ? *number : 0;
}

}  // namespace

NumberedLock::NumberedLock(Store& store, const std::string& name, const Clock& clock)
    : store_(store), folder_(StrCat(name, name.ends_with(".lock") ? "/" : ".lock/")), clock_(clock) {}

std::string NumberedLock::KeyOf(int64_t number) const {
  char digits[kDigits + 8];
  snprintf(digits, sizeof digits, "%016lld", static_cast<long long>(number));
  return StrCat(folder_, digits);
}

// The record, of nobody who is known when it is damaged; nullopt: there is none.
Result<std::optional<LockRecord>> NumberedLock::ReadRecord(int64_t number) const {
  const std::string key = KeyOf(number);
  const auto bytes = store_.Get(key, 0, kLockRecordMost + 1);
  if (!bytes && bytes.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!bytes && bytes.error().code != ErrorCode::kCorrupt) return Fail(bytes.error());
  LockRecord unknown;
  unknown.held = true;
  unknown.lease_us = kLongestLeaseUs;
  return bytes ? DecodeLockRecord(*bytes, key).value_or(unknown) : unknown;
}

Result<NumberedLock::Top> NumberedLock::ReadTop() {
  for (int i = 0; i < kReadTries; ++i) {
    OC_TRY(all, store_.ListAll(folder_));
    std::vector<int64_t> numbers;
    for (const StoredObjectInfo& object : all) {
      const int64_t number = NumberOf(std::string_view(object.key).substr(folder_.size()));
      if (number != 0) numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    const int64_t highest = numbers.empty() ? 0 : numbers.back();
    Top top;
    top.number = std::max(highest, known_);
    if (top.number == 0) return top;
    OC_TRY(record, ReadRecord(top.number));
    if (!record) known_ = 0;
    if (!record) continue;
    // A listing that is older than what is known: the objects themselves are asked.
    while (highest < known_) {
      OC_TRY(next, ReadRecord(top.number + 1));
      if (!next) break;
      record = std::move(next);
      ++top.number;
    }
    known_ = top.number;
    top.record = std::move(*record);
    for (const int64_t lower : numbers) {
      if (lower < top.number - kKept) top.old.push_back(KeyOf(lower));
    }
    return top;
  }
  return Fail(ErrorCode::kUnavailable, StrCat("the lock ", Quoted(folder_, 200), " in store ",
                                              Quoted(store_.Location(), 300), " changes all the time"));
}

Result<std::optional<LockRecord>> NumberedLock::Look() {
  OC_TRY(top, ReadTop());
  return top.number != 0 && top.record.held ? std::optional(top.record) : std::nullopt;
}

bool NumberedLock::MayFollow(const Top& top, int64_t asked_us) {
  if (top.number == 0 || !top.record.held) return true;
  if (top.number != watched_ || top.record != watched_record_) {
    watched_ = top.number;
    watched_record_ = top.record;
    watched_us_ = clock_.MonotonicUs();  // after it was seen: nobody sent it later than that
    return false;
  }
  return asked_us - watched_us_ >= top.record.lease_us;
}

Result<bool> NumberedLock::Claim(int64_t number) {
  if (claimed_ != number) {
    claimed_ = number;
    claimed_us_ = clock_.MonotonicUs();
  }
  const auto created = store_.CreateStrictly(KeyOf(number), EncodeLockRecord(own_));
  if (!created && created.error().code != ErrorCode::kConflict) return Fail(created.error());
  known_ = std::max(known_, number);
  OC_TRY(top, ReadTop());
  // One that was removed long ago can be created again; those before it went first.
  bool gap = false;
  if (number > 1) {
    OC_TRY(before, ReadRecord(number - 1));
    gap = !before;
  }
  const bool own_top = top.number == number && IsOwn(top);
  if (gap && (created || own_top)) (void)store_.Remove(KeyOf(number));
  if (gap || !own_top || !top.record.held) return false;
  number_ = number;
  sent_us_ = claimed_us_;
  for (const std::string& key : top.old) {
    if (!store_.Remove(key)) break;  // the lowest first, without a gap; the next one tries again
  }
  return true;
}

// A service that does not heed the condition would let everybody in.
Result<void> NumberedLock::ProveConditions(int64_t number) {
  auto again = store_.CreateStrictly(KeyOf(number), EncodeLockRecord(own_));
  if (!again && again.error().code == ErrorCode::kConflict) return {};
  if (!again) return again;
  (void)store_.Remove(KeyOf(number));
  return Fail(ErrorCode::kUsage,
              StrCat("store ", Quoted(store_.Location(), 300),
                     " cannot keep locks: it creates what is there already ('If-None-Match' is ignored)"),
              "use another store for the lock: a folder, ssh://, az://, or S3 of AWS, Ceph or MinIO");
}

Result<LockTake> NumberedLock::Take(const LockRecord& own) {
  own_.holder = own.holder;
  const int64_t asked_us = clock_.MonotonicUs();
  OC_TRY(top, ReadTop());
  // It may have been taken by a try whose answer was lost.
  const bool again = claimed_ != 0 && claimed_ == top.number && IsOwn(top) && top.record.held;
  if (!again && !MayFollow(top, asked_us)) return LockTake{false, top.record};
  const int64_t number = again ? top.number : top.number + 1;
  own_ = own;
  own_.turn = number;
  OC_TRY(taken, Claim(number));
  if (taken) {
    OC_TRY_VOID(ProveConditions(number));
    return LockTake{true, {}};
  }
  OC_TRY(now, ReadTop());
  return LockTake{false, now.record};
}

tl::unexpected<Error> NumberedLock::Lost(const Top& top) const {
  return Fail(
      ErrorCode::kConflict,
      StrCat("the lock ", Quoted(folder_.substr(0, folder_.size() - 1), 200), " in store ",
             Quoted(store_.Location(), 300), " is not ours any more",
             top.record.held && !IsOwn(top) ? StrCat(": ", DescribeHolder(top.record), " has it") : ""));
}

Result<void> NumberedLock::Renew() {
  OC_TRY(renewed, Claim(number_ + 1));
  if (renewed) return {};
  OC_TRY(top, ReadTop());
  return Lost(top);
}

Result<void> NumberedLock::Release() {
  LockRecord free = own_;
  free.held = false;
  for (int i = 0; i < kReleaseTries; ++i) {
    auto created = store_.CreateStrictly(KeyOf(number_ + 1), EncodeLockRecord(free));
    if (!created && created.error().code != ErrorCode::kConflict) return created;
    // Within the lease nobody else can have been here before; after this somebody may be here already.
    const bool in_time = clock_.MonotonicUs() - sent_us_ < own_.lease_us;
    if (created && in_time) return {};
    known_ = std::max(known_, number_ + 1);
    OC_TRY(top, ReadTop());
    if (IsOwn(top) && !top.record.held) return {};
    if (created || !IsOwn(top)) return Lost(top);
    number_ = top.number;  // a renewal whose answer was lost
  }
  return Fail(ErrorCode::kUnavailable, StrCat("the lock ", Quoted(folder_, 200), " cannot be let go of"));
}

}  // namespace overcap
