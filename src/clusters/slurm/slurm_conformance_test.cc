// SPDX-License-Identifier: Apache-2.0
// The conformance suite against a real Slurm: tests/clusters/test_slurm_driver.py starts one and runs this
// there, with a folder that all nodes see in OVERCAP_SLURM_STATE.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <thread>

#include "base/text.h"
#include "clusters/slurm/slurm_cluster.h"
#include "clusters/slurm/slurm_queue.h"
#include "clusters/testing/cluster_conformance.h"
#include "sys/process.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr auto kPatience = std::chrono::seconds(120);

ClusterSettings Settings(const std::string& root) {
  ClusterSettings settings;
  settings.name = "slurm";
  settings.driver = "slurm";
  settings.root = root;
  settings.binary = OVERCAP_BINARY;
  settings.machine = [](bool) { return Machine(); };
  settings.grace_seconds = 2;
  // A way of its own to Slurm's programs gives each test a mirror of its own: what an earlier one saw waiting
  // is not listed.
  settings.scheduler.programs = root + "/programs";
  return settings;
}

// What the test before left in Slurm is not this cluster's: one that ends still would be listed.
bool IsQuiet(const std::string& root) {
  SlurmContext context(Settings(root));
  const auto rows = SlurmQueue(&context).Look();
  if (!rows) return false;
  return std::all_of(rows->begin(), rows->end(),
                     [](const SqueueJob& row) { return ReadSlurmState(row.raw_state).ended; });
}

// Removes its folder.
class TemporarySlurmCluster : public SlurmCluster {
 public:
  explicit TemporarySlurmCluster(std::string root) : SlurmCluster(Settings(root)), root_(std::move(root)) {}
  ~TemporarySlurmCluster() override {
    std::error_code error;
    std::filesystem::remove_all(root_, error);
  }

 private:
  std::string root_;
};

std::unique_ptr<Cluster> MakeSlurm(std::string* why) {
  const char* state = std::getenv("OVERCAP_SLURM_STATE");
  if (state == nullptr) {
    *why =
        "no Slurm: OVERCAP_SLURM_STATE names no folder that its nodes share "
        "(tests/clusters/test_slurm_driver.py runs this with one)";
    return nullptr;
  }
  std::string root = StrCat(state, "/conformance-XXXXXX");
  if (mkdtemp(root.data()) == nullptr) {
    *why = StrCat("cannot make a folder in ", state);
    return nullptr;
  }
  const auto sbatch = ResolveProgram("sbatch", PathOf(Variables::OfThisProcess().entries()), "/");
  if (!sbatch) {
    *why = sbatch.error().message;
    return nullptr;
  }
  std::filesystem::create_directory_symlink(std::filesystem::path(*sbatch).parent_path(), root + "/programs");
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!IsQuiet(root) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return std::make_unique<TemporarySlurmCluster>(root);
}

INSTANTIATE_TEST_SUITE_P(Slurm, ClusterConformance, testing::Values(ClusterMaker{"slurm", MakeSlurm}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace overcap
