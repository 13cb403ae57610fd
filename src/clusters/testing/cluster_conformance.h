// SPDX-License-Identifier: Apache-2.0
// What every Cluster must do. Each implementation's test instantiates the suite once:
//   INSTANTIATE_TEST_SUITE_P(Fake, ClusterConformance, testing::Values(ClusterMaker{"fake", MakeFake}));
// A cluster under test has at least 2 GPUs and 2 CPUs, nothing runs on it, and it can run `true`, `false`,
// `sleep` and `sh`.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <ostream>
#include <string>

#include "clusters/cluster.h"

namespace overcap {

// Makes a fresh, empty cluster; what it holds is removed with it. nullptr: it cannot be had here, `why` says
// why, and the tests skip.
struct ClusterMaker {
  std::string name;
  std::function<std::unique_ptr<Cluster>(std::string* why)> make;
};
inline void PrintTo(const ClusterMaker& maker, std::ostream* out) {
  *out << maker.name;
}

class ClusterConformance : public testing::TestWithParam<ClusterMaker> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A spec that is complete and asks for one rank and no GPU; every call gives a new id.
  JobSpec Spec(std::vector<std::string> command);
  std::string Submit(const JobSpec& spec);  // its id; a failure is the test's
  JobRecord QueryOne(const std::string& id);
  JobRecord Ended(const std::string& id);  // after waiting for its end

  std::unique_ptr<Cluster> cluster_;
  int64_t next_ = 0;
};

}  // namespace overcap
