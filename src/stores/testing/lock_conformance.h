// SPDX-License-Identifier: Apache-2.0
// What locks do on every store that can keep them. The makers are those of store_conformance.h.
#pragma once

#include <memory>
#include <string>

#include "stores/store_lock.h"
#include "stores/testing/store_conformance.h"

namespace overcap {

class LockConformance : public testing::TestWithParam<StoreMaker> {
 protected:
  void SetUp() override;

  std::shared_ptr<Store> Again() { return GetParam().again(*store_); }  // as another process has it
  LockRecord Own() const;
  // A holder that has just been killed: it took the lock, and does nothing more.
  std::unique_ptr<LockPlace> TakeAndDie(Store& store);
  LockOptions Options(int64_t wait_us = 0) const;
  int64_t lease_us() const { return GetParam().lease_us; }

  std::shared_ptr<Store> store_;
};

}  // namespace overcap
