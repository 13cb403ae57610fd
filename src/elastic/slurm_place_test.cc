// SPDX-License-Identifier: Apache-2.0
#include "elastic/slurm_place.h"

#include <gtest/gtest.h>
#include <set>

namespace overcap::elastic {
namespace {

Variables Step(const char* self) {
  return Variables({"SLURM_JOB_ID=7", "SLURM_STEP_ID=2", "SLURM_STEP_NODELIST=n[2-4]",
                    "SLURM_JOB_NODELIST=n[1-4]", std::string("SLURMD_NODENAME=") + self});
}

TEST(PlaceUnderSlurm, TheFirstNodeOfAStepHostsItAndTheOthersKnowWhere) {
  const RendezvousPlace head = PlaceUnderSlurm({}, Step("n2")), other = PlaceUnderSlurm({}, Step("n4"));
  EXPECT_EQ(head.kind, RendezvousPlace::Kind::kTcp);
  EXPECT_EQ(head.id, "slurm-7.2");
  EXPECT_EQ(head.here, true);
  EXPECT_EQ(other.here, false);
  EXPECT_EQ(head.endpoints, other.endpoints);
  ASSERT_EQ(head.endpoints.size(), static_cast<size_t>(kSlurmPorts));
  std::set<int> ports;
  for (const auto& [host, port] : head.endpoints) {
    EXPECT_EQ(host, "n2");
    EXPECT_GE(port, 15'000);
    EXPECT_LT(port, 31'000);
    ports.insert(port);
  }
  EXPECT_EQ(ports.size(), static_cast<size_t>(kSlurmPorts));
}

TEST(PlaceUnderSlurm, ARequeuedJobIsAnotherOne) {
  Variables variables = Step("n2");
  variables.Set("SLURM_RESTART_COUNT", "1");
  EXPECT_EQ(PlaceUnderSlurm({}, variables).id, "slurm-7.2-1");
}

TEST(PlaceUnderSlurm, AHeadThatIsToldWins) {
  Variables variables = Step("n3");
  variables.Set("OVERCAP_RDZV_HEAD", "n1");
  RendezvousPlace asked;
  asked.id = "job";
  const RendezvousPlace place = PlaceUnderSlurm(asked, variables);
  EXPECT_EQ(place.endpoints.front().first, "n1");
  EXPECT_EQ(place.id, "job");
  EXPECT_EQ(place.here, false);
}

TEST(PlaceUnderSlurm, NothingElseChanges) {
  RendezvousPlace etcd;
  etcd.kind = RendezvousPlace::Kind::kEtcd;
  EXPECT_EQ(PlaceUnderSlurm(etcd, Step("n2")).kind, RendezvousPlace::Kind::kEtcd);
  EXPECT_EQ(PlaceUnderSlurm({}, Variables()).kind, RendezvousPlace::Kind::kAuto);
  // One node needs no network; a batch script without an id may start several groups.
  EXPECT_EQ(PlaceUnderSlurm({}, Variables({"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=n1",
                                           "SLURMD_NODENAME=n1"}))
                .kind,
            RendezvousPlace::Kind::kAuto);
  EXPECT_EQ(
      PlaceUnderSlurm({}, Variables({"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-4]", "SLURMD_NODENAME=n1"}))
          .kind,
      RendezvousPlace::Kind::kAuto);
}

}  // namespace
}  // namespace overcap::elastic
