// SPDX-License-Identifier: Apache-2.0
// A lock as a row of numbered objects, of which the highest counts (docs/formats/locks.md, "S3, folders,
// ssh").
#pragma once

#include <string>
#include <vector>

#include "stores/lock_place.h"
#include "stores/store.h"

namespace overcap {

class NumberedLock : public LockPlace {
 public:
  // So many numbers below the highest stay. Who comes late to one of them is refused by the store, and need
  // not learn from a listing that there is a higher one: over NFS it may be older than that.
  static constexpr int64_t kKept = 8;

  // Both must outlive it.
  NumberedLock(Store& store, const std::string& name, const Clock& clock = OwnClock());

  Result<std::optional<LockRecord>> Look() override;
  Result<LockTake> Take(const LockRecord& own) override;
  Result<void> Renew() override;
  Result<void> Release() override;
  int64_t SentUs() const override { return sent_us_; }
  int64_t Turn() const override { return own_.turn; }

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
