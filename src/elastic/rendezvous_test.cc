// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "elastic/etcd/etcd_rendezvous.h"
#include "elastic/host/host_rendezvous.h"
#include "elastic/listen.h"
#include "elastic/testing/rendezvous_contract.h"
#include "sys/process.h"
#include "sys/testing/temp_folder.h"

namespace overcap::elastic {
namespace {

const PosixClock kClock;
KernelRandom random_bits;

std::unique_ptr<Rendezvous> OnHost(const RendezvousPlace& place, const std::string& folder,
                                   const std::string& agent) {
  HostRendezvousOptions options;
  options.folder = folder;
  options.agent = agent;
  options.times.ttl = 1'000'000;
  auto made = HostRendezvous::Make(place, options, kClock, &random_bits);
  EXPECT_TRUE(made);
  return std::move(*made);
}

TEST(RendezvousByLock, KeepsTheContract) {
  const TempFolder folder;
  const auto place = ParseRendezvous("auto:job");
  KeepsTheRendezvousContract([&](const std::string& agent) { return OnHost(*place, folder.Path(), agent); });
}

TEST(RendezvousByPort, KeepsTheContract) {
  const TempFolder folder;
  const int port = HoldPort().port;
  const auto place = ParseRendezvous(StrCat("tcp://127.0.0.1:", port, "/job"));
  KeepsTheRendezvousContract([&](const std::string& agent) { return OnHost(*place, folder.Path(), agent); });
}

TEST(RendezvousByLock, ALeaderThatFindsAGroupThatNobodyEndedWaitsForItsRights) {
  const TempFolder folder;
  const auto place = ParseRendezvous("auto:job");
  {
    auto first = OnHost(*place, folder.Path(), "a");
    ASSERT_TRUE(DriveUntil({first.get()}, [&] { return Leads(*first); }));
    EXPECT_EQ(first->standing().quiet_us, 0);
    ElasticRecord record;
    record.epoch = 1;
    first->Keep(record);
  }  // it died
  auto second = OnHost(*place, folder.Path(), "b");
  ASSERT_TRUE(DriveUntil({second.get()}, [&] { return Leads(*second); }));
  EXPECT_GT(second->standing().quiet_us, kClock.MonotonicUs());
}

// A real etcd of this test's own.
class RealEtcd {
 public:
  RealEtcd() {
    const auto program = ResolveProgram("etcd", "/usr/bin:/usr/local/bin", "/");
    if (!program) return;
    HeldPort client = HoldPort(), peer = HoldPort();
    port_ = client.port;
    const std::string at = StrCat("http://127.0.0.1:", port_),
                      peer_at = StrCat("http://127.0.0.1:", peer.port);
    log_ = Fd(open((folder_.Path() + "/log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    SpawnRequest request;
    request.argv = {*program,
                    "--name",
                    "t",
                    "--data-dir",
                    folder_.Path() + "/data",
                    "--listen-client-urls",
                    at,
                    "--advertise-client-urls",
                    at,
                    "--listen-peer-urls",
                    peer_at,
                    "--initial-advertise-peer-urls",
                    peer_at,
                    "--initial-cluster",
                    "t=" + peer_at};
    request.stdout_fd = request.stderr_fd = log_.Get();
    request.parent_death_signal = SIGKILL;
    request.env = {"PATH=/usr/bin:/bin"};
    client = {};  // etcd takes them now
    peer = {};
    auto spawned = Spawn(request);
    if (spawned) pid_ = spawned->pid;
  }
  ~RealEtcd() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int port() const { return pid_ > 0 ? port_ : 0; }

 private:
  TempFolder folder_;
  Fd log_;
  pid_t pid_ = -1;
  int port_ = 0;
};

TEST(RendezvousByEtcd, KeepsTheContract) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "NOT TESTED: the race detector takes the steps of a program that is started for its parent's";
#endif
  const RealEtcd etcd;
  if (etcd.port() == 0) GTEST_SKIP() << "NOT TESTED: etcd is not installed";
  const auto place = ParseRendezvous(StrCat("etcd://127.0.0.1:", etcd.port(), "/job"));
  uint64_t seed = 1;
  KeepsTheRendezvousContract([&](const std::string& agent) -> std::unique_ptr<Rendezvous> {
    EtcdRendezvousOptions options;
    options.etcd.endpoints = place->endpoints;
    options.agent = agent;
    auto made = EtcdRendezvous::Make(*place, options, kClock, seed++);
    EXPECT_TRUE(made);
    return std::move(*made);
  });
}

}  // namespace
}  // namespace overcap::elastic
