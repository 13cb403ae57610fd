// SPDX-License-Identifier: Apache-2.0
// What every Store must do. Each implementation's test instantiates the suite once:
//   INSTANTIATE_TEST_SUITE_P(Mem, StoreConformance, testing::Values(StoreMaker{"mem", MakeMem}),
//   ConformingStoreName);
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "stores/store.h"

namespace overcap {

struct StoreMaker {
  std::string name;
  // A fresh, empty store; what it holds is removed with it. nullptr: it cannot be had here, `why` says why,
  // and the tests skip.
  std::function<std::shared_ptr<Store>(std::string* why)> make;
  // Another store object on the same bytes, as another process would have it.
  std::function<std::shared_ptr<Store>(Store& same)> again;
  int64_t lease_us = 2'000'000;  // of locks in lock_conformance.h
};
inline void PrintTo(const StoreMaker& maker, std::ostream* out) {
  *out << maker.name;
}
inline std::string ConformingStoreName(const testing::TestParamInfo<StoreMaker>& info) {
  return info.param.name;
}

class StoreConformance : public testing::TestWithParam<StoreMaker> {
 protected:
  void SetUp() override;

  void Put(const std::string& key, std::string_view bytes);  // a failure is the test's
  std::string Get(const std::string& key);                   // "error: <code>" when it fails
  std::vector<std::string> Keys(const std::string& prefix);  // of all pages

  std::shared_ptr<Store> store_;
};

}  // namespace overcap
