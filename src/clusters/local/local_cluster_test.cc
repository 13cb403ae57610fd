// SPDX-License-Identifier: Apache-2.0
// The conformance suite against the real engine: OVERCAP_BINARY is started on a root of its own.
#include "clusters/local/local_cluster.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/text.h"
#include "clusters/testing/cluster_conformance.h"
#include "sys/fd.h"

namespace overcap {
namespace {

Machine TwoGpus() {
  return {.host = "here",
          .cpus = 2,
          .mem_bytes = 16LL << 30,
          .gpus = {{.index = 0, .type = "a40", .uuid = {}}, {.index = 1, .type = "a40", .uuid = {}}}};
}

// Ends its engine and removes its root.
class TemporaryLocalCluster : public LocalCluster {
 public:
  explicit TemporaryLocalCluster(std::string root)
      : LocalCluster({"local", root, OVERCAP_BINARY, [](bool) { return TwoGpus(); }}),
        root_(std::move(root)) {}
  ~TemporaryLocalCluster() override {
    EngineClient client({root_, "", [] { return std::string(); }});
    (void)client.Call(R"({"op":"stop"})", std::chrono::seconds(5));
    WaitUntilEnded();
    std::error_code error;
    std::filesystem::remove_all(root_, error);
  }

 private:
  // The engine writes in its root, and removes its socket, after its answer.
  void WaitUntilEnded() {
    const Fd lock(open((root_ + "/daemon.lock").c_str(), O_RDONLY | O_CLOEXEC));
    for (int tries = 0; lock && tries < 1000 && flock(lock.Get(), LOCK_EX | LOCK_NB) != 0; ++tries)
      usleep(10000);
  }

  std::string root_;
};

std::unique_ptr<Cluster> MakeLocal(std::string* why) {
  if (!std::filesystem::exists(OVERCAP_BINARY)) {
    *why = StrCat("there is no ", OVERCAP_BINARY, " to run the engine with; build target 'overcap' first");
    return nullptr;
  }
  char root[] = "/tmp/overcap_local_XXXXXX";
  if (mkdtemp(root) == nullptr) {
    *why = "cannot make a folder in /tmp";
    return nullptr;
  }
  return std::make_unique<TemporaryLocalCluster>(root);
}

INSTANTIATE_TEST_SUITE_P(Local, ClusterConformance, testing::Values(ClusterMaker{"local", MakeLocal}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace overcap
