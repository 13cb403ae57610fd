// SPDX-License-Identifier: Apache-2.0
// A lock on a store under a name (docs/formats/locks.md): held by one at a time, renewed in the background,
// lost by itself when its holder dies. The holder stops believing in it before anybody else can take it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "stores/lock_place.h"
#include "stores/store.h"

namespace overcap {

struct LockOptions {
  int64_t lease_us = 30'000'000;
  int64_t wait_us = 0;  // how long to try again; 0: one look
  int64_t poll_us = 1'000'000;
  // Each time that it could not be taken, with why ("held by ..."); false: give up. May be empty.
  std::function<bool(const std::string& why)> waiting = {};
};

class StoreLock {
 public:
  // kConflict: somebody else has it, and the message says who. kUsage where this store cannot keep locks.
  // What is unreachable at the first try fails; later it is tried again. `name` is a key.
  static Result<std::unique_ptr<StoreLock>> Acquire(std::shared_ptr<Store> store, const std::string& name,
                                                    const LockOptions& options);
  // Lets go of it if it is held.
  ~StoreLock();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  // Whether it is ours, for sure. Once false always false.
  bool Held() const;
  // By LockPlace::OwnClock(): unless it is renewed Held() ends then, and nobody may act on it any more after
  // the second.
  int64_t HeldUntilUs() const;
  int64_t MustEndUs() const;
  // Somebody else has it: nothing may be done any more, not even to end in peace.
  bool Taken() const;
  std::string WhyLost() const;  // one line; "" while it is held
  int64_t turn() const;
  // kConflict when it was not held any more. After that it is not.
  Result<void> Release();

 private:
  struct State;
  StoreLock(std::shared_ptr<State> state, std::thread thread)
      : state_(std::move(state)), thread_(std::move(thread)) {}
  static void KeepRenewing(const std::shared_ptr<State>& state);
  // False: the thread hangs in a call of the store that does not come back in time, and is left behind.
  bool EndThread(int64_t patience_us);

  std::shared_ptr<State> state_;  // the thread's too: it may be left behind
  std::thread thread_;
};

// How long one call of a store may take that is opened for a lock.
int64_t LockPatienceUs(int64_t lease_us);

}  // namespace overcap
