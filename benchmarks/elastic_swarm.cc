// SPDX-License-Identifier: Apache-2.0
// Thousands of agents in one process, for ./bench: real state machines, real connections, no ranks.
//   elastic_swarm ETCD-PORT ID COUNT HOLD-SECONDS NAME=VALUE...      (the terms of the job)
// Says "joined SECONDS" when all have their ranks.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <poll.h>
#include <signal.h>
#include <string>
#include <vector>

#include "base/text.h"
#include "elastic/etcd/etcd_rendezvous.h"
#include "elastic/link/member_link.h"
#include "elastic/member_state.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace {

using namespace overcap;
using namespace overcap::elastic;

struct SwarmAgent {
  SwarmAgent(const Clock& clock, Random* random) : member({}, 1'000'000), link(clock, random) {}
  MemberState member;
  MemberLink link;
};

class Swarm {
 public:
  Swarm(int count, std::vector<std::pair<std::string, std::string>> terms) : terms_(std::move(terms)) {
    for (int i = 0; i < count; ++i) agents_.push_back(std::make_unique<SwarmAgent>(clock_, &random_));
  }

  // A look at everybody; how many have their ranks.
  int Turn(const LeaderContact& leader) {
    int running = 0;
    for (size_t i = 0; i < agents_.size(); ++i) {
      SwarmAgent& agent = *agents_[i];
      if (agent.link.state() == MemberLink::State::kFailed) agent.member.OnClosed(), agent.link.Close();
      if (agent.link.state() == MemberLink::State::kIdle) agent.link.Begin(leader, 10'000'000);
      const std::vector<ToMember> got = agent.link.Act();
      if (agent.link.TakeOpened()) Open(&agent, i);
      for (const ToMember& message : got) Take(&agent, message);
      agent.member.OnTime(clock_.MonotonicUs());
      (void)agent.member.TakeActions();
      for (const ToLeader& message : agent.member.TakeMessages()) agent.link.Send(message);
      running += agent.member.Running() ? 1 : 0;
    }
    return running;
  }

  void Wait(int ms) {
    std::vector<pollfd> fds;
    for (const auto& agent : agents_) agent->link.Prepare(&fds);
    (void)poll(fds.data(), fds.size(), ms);
  }

  const PosixClock& clock() const { return clock_; }

 private:
  void Open(SwarmAgent* agent, size_t number) {
    JoinRequest join;
    join.version = OVERCAP_VERSION;
    join.agent = join.host = StrCat("swarm", number);
    join.address = agent->link.address();
    join.terms = terms_;
    agent->link.Send(join);
    agent->member.OnPort(1);
    agent->member.OnConnected(clock_.MonotonicUs());
  }
  void Take(SwarmAgent* agent, const ToMember& message) {
    if (const auto* refusal = std::get_if<Refusal>(&message)) {
      fprintf(stderr, "refused: %s\n", refusal->message.c_str());
      exit(1);
    }
    if (const auto* answer = std::get_if<LeaderAnswer>(&message))
      agent->member.OnAnswer(*answer, clock_.MonotonicUs());
    if (const auto* nod = std::get_if<LeaderNod>(&message)) agent->member.OnNod(*nod, clock_.MonotonicUs());
  }

  PosixClock clock_;
  KernelRandom random_;
  std::vector<std::pair<std::string, std::string>> terms_;
  std::vector<std::unique_ptr<SwarmAgent>> agents_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  signal(SIGPIPE, SIG_IGN);
  std::vector<std::pair<std::string, std::string>> terms;
  for (int i = 5; i < argc; ++i) {
    const std::string word = argv[i];
    terms.emplace_back(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
  }
  Swarm swarm(atoi(argv[3]), std::move(terms));
  RendezvousPlace place;
  place.kind = RendezvousPlace::Kind::kEtcd;
  place.endpoints = {{"127.0.0.1", atoi(argv[1])}};
  place.id = argv[2];
  EtcdRendezvousOptions options;
  options.etcd.endpoints = place.endpoints;
  options.agent = "swarm";
  auto rendezvous = EtcdRendezvous::Make(place, options, swarm.clock(), 1);
  if (!rendezvous) return 1;
  const int64_t begin = swarm.clock().MonotonicUs();
  int64_t joined = 0;
  for (;;) {
    const int64_t now = swarm.clock().MonotonicUs();
    if (now - begin > 120'000'000) return 1;
    if (joined != 0 && now - joined > atoi(argv[4]) * 1'000'000LL) return 0;
    if (!(*rendezvous)->Act()) return 1;
    if ((*rendezvous)->standing().kind != Standing::Kind::kFollows) {
      poll(nullptr, 0, 1);
      continue;
    }
    const int running = swarm.Turn((*rendezvous)->standing().leader);
    if (joined == 0 && running == atoi(argv[3])) {
      joined = swarm.clock().MonotonicUs();
      printf("joined %.3f\n", static_cast<double>(joined - begin) / 1e6);
      fflush(stdout);
    }
    if (joined == 0) {
      swarm.Wait(1);
    } else {
      poll(nullptr, 0, 100);
    }
  }
}
