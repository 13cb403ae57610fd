// SPDX-License-Identifier: Apache-2.0
// What NumberedLock does on every store that can keep locks. The makers are those of store_conformance.h.
#pragma once

#include <memory>
#include <string>

#include "stores/numbered_lock.h"
#include "stores/testing/store_conformance.h"
#include "sys/sleepless_clock.h"

namespace overcap {

class LockConformance : public testing::TestWithParam<StoreMaker> {
 protected:
  // One process that wants the lock, with its own way to the store.
  struct Person {
    Person(std::shared_ptr<Store> way, int64_t lease_us);
    bool Take();  // an error is the test's

    const SleeplessClock clock;
    const std::shared_ptr<Store> store;
    NumberedLock lock;
    const LockRecord own;
  };

  void SetUp() override;

  std::unique_ptr<Person> Another(int64_t lease_us = GetParam().lease_us);  // as another process
  static void TakeInTime(Person* person);                                   // tries for two minutes
  int64_t lease_us() const { return GetParam().lease_us; }

  std::shared_ptr<Store> store_;
};

}  // namespace overcap
