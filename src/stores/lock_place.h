// SPDX-License-Identifier: Apache-2.0
// How a kind of store keeps one lock: the seam below StoreLock, which is what others use. One thread at a
// time. stores/testing/lock_conformance.h says what each must do.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "stores/lock_record.h"
#include "sys/clock.h"

namespace overcap {

struct LockTake {
  bool taken = false;
  LockRecord holder;  // otherwise: who has it, as far as that is known
};

class LockPlace {
 public:
  virtual ~LockPlace() = default;

  // Who holds it, as far as one look tells: one that has died is named for a while. nullopt: nobody.
  virtual Result<std::optional<LockRecord>> Look() = 0;
  // To be called again, with the same record, until it is taken: what was seen is remembered, and a holder
  // that shows no sign of life for its whole lease is followed. After an error it may be taken or not: the
  // next call knows. kUsage where the store cannot keep locks, or not for so long.
  virtual Result<LockTake> Take(const LockRecord& own) = 0;
  // After Take. kConflict: somebody else has, or may have, it now. After another error: again.
  virtual Result<void> Renew() = 0;
  // After Take. kConflict: it was not ours any more, and nothing was changed.
  virtual Result<void> Release() = 0;

  // By Clock(): a moment before which nobody else could begin to measure our lease; of the last Take or Renew
  // that succeeded.
  virtual int64_t SentUs() const = 0;
  virtual int64_t Turn() const = 0;  // ours, after Take

  static const Clock& OwnClock();                        // of all of this; see SleeplessClock
  static std::string FolderOf(const std::string& name);  // "train" -> "train.lock/"
};

}  // namespace overcap
