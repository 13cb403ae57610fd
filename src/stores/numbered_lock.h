// SPDX-License-Identifier: Apache-2.0
// A lock on a store as a row of numbered objects, of which the highest counts (docs/formats/locks.md). It
// starts no thread and waits for nothing: the holder calls Renew in time, and stops believing in the lock
// before SentUs() + lease. stores/testing/lock_conformance.h says what holds on every store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "stores/lock_record.h"
#include "stores/store.h"
#include "sys/clock.h"

namespace overcap {

struct LockTake {
  bool taken = false;
  LockRecord holder;  // otherwise: who has it, as far as that is known
};

// One thread at a time.
class NumberedLock {
 public:
  // So many numbers below the highest stay. Who comes late to one of them is refused by the store, and need
  // not learn from a listing that there is a higher one: over NFS it may be older than that.
  static constexpr int64_t kKept = 8;

  // "train" is the folder "train.lock/"; nothing is read or written yet. The monotonic time of `clock` goes
  // on while the machine sleeps (SleeplessClock). Both must outlive it.
  NumberedLock(Store& store, const std::string& name, const Clock& clock);

  // Who holds it, as far as one look tells: one that has died is named for a while. nullopt: no one.
  Result<std::optional<LockRecord>> Look();
  // To be called again, with the same record, until it is taken: what was seen is remembered, and a holder
  // that shows no sign of life for its whole lease is followed. After an error it may be taken or not: the
  // next call knows. kUsage where the store cannot keep locks.
  Result<LockTake> Take(const LockRecord& own);
  // After Take. kConflict: another has, or may have, it now. After another error: again.
  Result<void> Renew();
  // After Take. kConflict: it was not ours any more, and nothing was changed.
  Result<void> Release();

  // By the clock: no other could begin to measure our lease before it. Of the last Take or Renew that
  // succeeded.
  int64_t SentUs() const { return sent_us_; }
  int64_t Turn() const { return own_.turn; }  // ours, after Take; larger than that of every holder before

 private:
  // The highest number.
  struct Top {
    int64_t number = 0;            // 0: there is none
    LockRecord record;             // of nobody, but held, when it is damaged
    std::vector<std::string> old;  // keys of those that may go, the lowest first
  };
  Result<Top> ReadTop();
  Result<std::optional<LockRecord>> ReadRecord(int64_t number) const;
  std::string KeyOf(int64_t number) const;
  bool IsOwn(const Top& top) const { return top.record.holder == own_.holder; }
  // Whether it may be followed: it is free, or has not changed for long enough. `asked_us`: before it was
  // read.
  bool MayFollow(const Top& top, int64_t asked_us);
  // True: `number` is ours and the highest, and the one before it is there; then old ones are removed.
  // kConflict is an answer: false.
  Result<bool> Claim(int64_t number);
  Result<void> ProveConditions(int64_t number);
  tl::unexpected<Error> Lost(const Top& top) const;

  Store& store_;
  const std::string folder_;
  const Clock& clock_;
  LockRecord own_;
  int64_t number_ = 0;                    // the last that was ours and the highest; 0: none
  int64_t sent_us_ = 0;                   // when it was sent first
  int64_t claimed_ = 0, claimed_us_ = 0;  // the last that was sent, and when first
  int64_t known_ = 0;                     // was there, whether it is listed or not; 0: none
  int64_t watched_ = 0, watched_us_ = 0;  // the highest as it was last seen, and since when
  LockRecord watched_record_;
};

}  // namespace overcap
