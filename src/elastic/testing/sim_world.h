// SPDX-License-Identifier: Apache-2.0
// Agents of one job, their leader's lease and the network between them, all of it from one seed. The agents
// are the real state machines; only sockets, processes and clocks are stood in for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "elastic/leader_state.h"
#include "elastic/member_state.h"
#include "sys/random.h"

namespace overcap::elastic::sim {

// What a run may leave out, to see that it is needed.
struct Broken {
  bool never_kills = false;       // an agent whose right ends lets its ranks live
  bool lends_too_long = false;    // a leader gives rights beyond its own
  bool wild_clocks = false;       // clocks that drift by far more than 1 %
  bool kills_slowly = false;      // killing takes longer than the guard
  bool believes_silence = false;  // a leader takes a broken connection for dead ranks
};

struct SimConfig {
  uint64_t seed = 1;
  int agents = 5, min_nodes = 2, max_nodes = 4;
  int64_t ttl_us = 1'000'000;
  int64_t chaos_us = 30'000'000;  // then everything heals
  int64_t calm_us = 12'000'000;
  Broken broken;
};

class SimWorld {
 public:
  explicit SimWorld(const SimConfig& config) : config_(config), random_(config.seed), times_{config.ttl_us} {
    for (int i = 0; i < config.agents; ++i) {
      agents_.push_back(std::make_unique<Agent>());
      Boot(i, static_cast<int64_t>(random_.Below(500'000)));
    }
    At(1'000'000, [this] { Chaos(); });
  }

  // Runs to the end; "" when the invariant held at every step.
  std::string Run() {
    const int64_t end = config_.chaos_us + config_.calm_us;
    while (!queue_.empty() && violation_.empty() && queue_.top().at_us <= end) {
      const Event event = queue_.top();
      queue_.pop();
      now_us_ = event.at_us;
      event.act();
      ++steps_;
    }
    return violation_;
  }

  int64_t steps() const { return steps_; }
  int64_t epochs() const { return epochs_; }  // that had ranks
  int64_t terms() const { return etcd_.next_term - 1; }
  int RanksOfLastEpoch() const { return alive_.empty() ? 0 : alive_.rbegin()->second; }

 private:
  struct Ranks {
    int64_t epoch;
    int64_t id;
  };
  struct Agent {
    std::string name;
    int64_t life = 0;  // which process this is; what an earlier one began is dropped
    bool up = false;
    int64_t frozen_until_us = 0;
    double rate = 1;
    int64_t offset_us = 0;
    std::optional<MemberState> member;
    std::optional<LeaderState> leader;
    int leads_for = -1;  // connections to us as leader are numbered
    int64_t right_us = 0;
    std::optional<Ranks> ranks;
    int peer = -1;        // whom we follow
    int connection = -1;  // number of our connection there
    int64_t heard_us = 0;
    int64_t tick = 0;
    std::map<int, int> served;  // connection -> agent
  };
  struct Etcd {
    int holder = -1;
    int64_t holder_life = 0, term = 0, next_term = 1, expires_us = 0;
    ElasticRecord record;
  };
  struct Event {
    int64_t at_us, order;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return std::tie(other.at_us, other.order) < std::tie(at_us, order);
    }
  };

  void At(int64_t at_us, std::function<void()> act) { queue_.push({at_us, order_++, std::move(act)}); }
  void In(int64_t us, std::function<void()> act) { At(now_us_ + us, std::move(act)); }
  int64_t Some(int64_t most) { return static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most) + 1)); }
  bool Chance(int percent) { return random_.Below(100) < static_cast<uint64_t>(percent); }
  bool Calm() const { return now_us_ >= config_.chaos_us; }

  int64_t ClockOf(const Agent& agent) const {
    return agent.offset_us + static_cast<int64_t>(static_cast<double>(now_us_) * agent.rate);
  }
  int64_t RealFor(const Agent& agent, int64_t local_us) const {
    const double real = static_cast<double>(local_us - agent.offset_us) / agent.rate;
    return std::max(now_us_, static_cast<int64_t>(real) + 1);
  }

  // ---- the network: late, lossy, cut

  bool Cut(int a, int b) const { return cuts_.contains({std::min(a, b), std::max(a, b)}); }
  bool Lost(int a, int b) { return Cut(a, b) || (!Calm() && Chance(3)); }
  int64_t Delay() { return Calm() || Chance(90) ? 200 + Some(3000) : Some(config_.ttl_us); }

  // For agent `to`, when it runs and is still the process that it was.
  void Deliver(int from, int to, std::function<void(Agent&)> act) {
    if (Lost(from, to)) return;
    const int64_t life = to == kEtcd ? 0 : agents_[to]->life;
    const int64_t delay = std::max(Delay(), last_arrival_[{from, to}] - now_us_ + 1);
    last_arrival_[{from, to}] = now_us_ + delay;
    In(delay, [this, to, life, act = std::move(act)] { Arrive(to, life, act); });
  }
  void Arrive(int to, int64_t life, const std::function<void(Agent&)>& act) {
    if (to == kEtcd) return act(*agents_[0]);
    Agent& agent = *agents_[to];
    if (!agent.up || agent.life != life) return;
    if (agent.frozen_until_us > now_us_) {
      return At(agent.frozen_until_us, [this, to, life, act] { Arrive(to, life, act); });
    }
    act(agent);
    Settle(to);
  }

  // ---- etcd: one lease, one key, one record

  void Ask(int i) {
    const int64_t life = agents_[i]->life, sent = ClockOf(*agents_[i]);
    Deliver(i, kEtcd, [this, i, life, sent](Agent&) {
      if (etcd_.holder >= 0 && now_us_ >= etcd_.expires_us) etcd_.holder = -1;
      if (etcd_.holder < 0 && (random_.Below(2) != 0 || Calm())) {
        etcd_.holder = i;
        etcd_.holder_life = life;
        etcd_.term = etcd_.next_term++;
      }
      const bool mine = etcd_.holder == i && etcd_.holder_life == life;
      if (mine) etcd_.expires_us = now_us_ + config_.ttl_us;
      const Etcd seen = etcd_;
      Deliver(kEtcd, i, [this, i, life, sent, seen, mine](Agent& agent) {
        if (agent.life != life) return;  // whoever asked is gone
        if (mine) return Lead(i, sent, seen);
        if (!agent.leader && seen.holder >= 0) Follow(i, seen.holder);
      });
    });
  }

  void Lead(int i, int64_t sent_us, const Etcd& seen) {
    Agent& agent = *agents_[i];
    agent.right_us = sent_us + times_.LeaderRight();
    if (!agent.leader || agent.leader->term() != seen.term) {
      LeaderConfig config;
      config.times = times_;
      config.min_nodes = config_.min_nodes;
      config.max_nodes = config_.max_nodes;
      config.max_restarts = 1 << 20;
      config.grow = Grow::kNow;
      config.join_timeout_us = kNever;
      config.last_call_us = 200'000;
      agent.leader.emplace(config, seen.record, seen.term, 0, ClockOf(agent));
      agent.served.clear();
      Follow(i, i);
    }
    agent.leader->OnRight(config_.broken.lends_too_long ? kNever : agent.right_us);
  }

  void Keep(int i, const ElasticRecord& record, int64_t term) {
    Deliver(i, kEtcd, [this, i, record, term](Agent&) {
      if (etcd_.holder != i || etcd_.term != term || now_us_ >= etcd_.expires_us) return;
      etcd_.record = record;
      Deliver(kEtcd, i, [this, record](Agent& agent) {
        if (agent.leader) agent.leader->OnStored(record, ClockOf(agent));
      });
    });
    // A lost answer is asked for again, as the real one does.
    const int64_t life = agents_[i]->life;
    In(config_.ttl_us / 4, [this, i, record, term, life] {
      Agent& agent = *agents_[i];
      if (agent.up && agent.life == life && agent.leader && agent.leader->term() == term &&
          agent.leader->epoch() == record.epoch) {
        Keep(i, record, term);
      }
    });
  }

  // ---- connections

  void Follow(int i, int leader) {
    Agent& agent = *agents_[i];
    if (agent.peer == leader && agent.connection >= 0) return;
    Disconnect(i);
    agent.peer = leader;
    const int number = next_connection_++;
    agent.connection = number;
    agent.heard_us = now_us_;
    JoinRequest join;
    join.agent = join.host = agent.name;
    join.address = "10.0.0.1";
    agent.member->OnConnected(ClockOf(agent));
    Deliver(i, leader, [this, i, number, join](Agent& there) {
      if (!there.leader) return;
      there.served[number] = i;
      there.leader->OnJoin(number, join, ClockOf(there));
    });
  }

  void Disconnect(int i) {
    Agent& agent = *agents_[i];
    if (agent.connection < 0) return;
    const int number = agent.connection;
    Deliver(i, agent.peer, [this, number](Agent& there) { CloseServed(&there, number); });
    agent.connection = agent.peer = -1;
    agent.member->OnClosed();
  }

  void CloseServed(Agent* there, int number) {
    if (!there->leader || there->served.erase(number) == 0) return;
    there->leader->OnClosed(number, ClockOf(*there));
    if (!config_.broken.believes_silence) return;
    for (const auto& other : agents_) {  // as if the agent had said that nothing is left
      if (other->member && other->member->Running() && !other->leader) {
        there->leader->OnJoin(
            1'000'000 + number,
            [&] {
              JoinRequest join;
              join.agent = join.host = other->name;
              return join;
            }(),
            ClockOf(*there));
        MemberReport gone;
        gone.epoch = there->leader->epoch();
        there->leader->OnReport(1'000'000 + number, gone, ClockOf(*there));
        return;
      }
    }
  }

  void Send(int i, const ToLeader& message) {
    Agent& agent = *agents_[i];
    const int number = agent.connection;
    if (number < 0) return;
    Deliver(i, agent.peer, [this, number, message](Agent& there) {
      if (!there.leader || !there.served.contains(number)) return;
      if (const auto* report = std::get_if<MemberReport>(&message)) {
        there.leader->OnReport(number, *report, ClockOf(there));
      } else if (const auto* beat = std::get_if<MemberBeat>(&message)) {
        there.leader->OnBeat(number, *beat, ClockOf(there));
      }
    });
  }

  void Answer(int i, int number, const ToMember& message) {
    const auto at = agents_[i]->served.find(number);
    if (at == agents_[i]->served.end()) return;
    Deliver(i, at->second, [this, number, message](Agent& there) {
      if (there.connection != number) return;
      there.heard_us = now_us_;
      if (const auto* answer = std::get_if<LeaderAnswer>(&message)) {
        there.member->OnAnswer(*answer, ClockOf(there));
      } else if (const auto* nod = std::get_if<LeaderNod>(&message)) {
        there.member->OnNod(*nod, ClockOf(there));
      }
    });
  }

  // ---- one agent

  void Boot(int i, int64_t in_us) {
    In(in_us, [this, i] {
      Agent& agent = *agents_[i];
      ++agent.life;
      agent.up = true;
      agent.name = StrCat("agent", i, "-", agent.life);
      const int64_t spread = config_.broken.wild_clocks ? 400 : 4;  // thousandths, to both sides
      agent.rate = 1 + (static_cast<double>(Some(2 * spread)) - static_cast<double>(spread)) / 1000;
      agent.offset_us = 1'000'000 + Some(1'000'000'000);
      agent.member.emplace(times_, 200'000);
      agent.leader.reset();
      agent.connection = agent.peer = -1;
      agent.frozen_until_us = 0;
      Renew(i, agent.life);
      Settle(i);
    });
  }

  // Asks etcd now and then: the leader to renew, the others when they hear nothing of their leader.
  void Renew(int i, int64_t life) {
    Agent& agent = *agents_[i];
    if (!agent.up || agent.life != life) return;
    if (agent.frozen_until_us > now_us_) {
      return At(agent.frozen_until_us + 1, [this, i, life] { Renew(i, life); });
    }
    if (agent.leader && ClockOf(agent) >= agent.right_us) StepDown(i);
    const bool deaf = agent.connection < 0 || now_us_ - agent.heard_us > config_.ttl_us;
    if (deaf) Disconnect(i);
    if (agent.leader || deaf) Ask(i);
    In(config_.ttl_us / 4 + Some(20'000), [this, i, life] { Renew(i, life); });
    Settle(i);
  }

  void StepDown(int i) {
    Agent& agent = *agents_[i];
    agent.leader.reset();
    for (const auto& [number, follower] : agent.served) {
      Deliver(i, follower, [this, number = number, follower = follower](Agent& there) {
        if (there.connection == number) Disconnect(follower);
      });
    }
    agent.served.clear();
  }

  // Carries out what the state machines want, and wakes them when they want to be woken.
  void Settle(int i) {
    Agent& agent = *agents_[i];
    if (!agent.up) return;
    const int64_t now = ClockOf(agent);
    agent.member->OnTime(now);
    for (const MemberAction& action : agent.member->TakeActions()) Act(i, action);
    for (const ToLeader& message : agent.member->TakeMessages()) Send(i, message);
    int64_t next = agent.member->NextUs();
    if (agent.leader) {
      agent.leader->OnTime(now);
      if (auto record = agent.leader->TakeStore()) Keep(i, *record, agent.leader->term());
      for (const auto& [number, message] : agent.leader->TakeMessages()) Answer(i, number, message);
      for (const int number : agent.leader->TakeDrops()) Drop(i, number);
      next = std::min(next, agent.leader->NextUs());
    }
    if (next == kNever) return;
    const int64_t tick = ++agent.tick, life = agent.life;
    At(std::max(RealFor(agent, next), agent.frozen_until_us), [this, i, tick, life] {
      if (agents_[i]->tick == tick && agents_[i]->life == life) Settle(i);
    });
  }

  void Drop(int i, int number) {
    const auto at = agents_[i]->served.find(number);
    if (at == agents_[i]->served.end()) return;
    Deliver(i, at->second, [this, number, follower = at->second](Agent& there) {
      if (there.connection == number) Disconnect(follower);
    });
    agents_[i]->served.erase(at);
  }

  void Act(int i, const MemberAction& action) {
    if (const auto* start = std::get_if<StartRanks>(&action)) return Start(i, start->plan.epoch);
    if (std::get_if<KillRanks>(&action) != nullptr) {
      if (!config_.broken.never_kills) EndRanks(i, KillTime());
    } else if (std::get_if<StopRanks>(&action) != nullptr || std::get_if<WarnRanks>(&action) != nullptr) {
      EndRanks(i, Some(300'000));
    }
  }

  int64_t KillTime() {
    return config_.broken.kills_slowly ? Some(2 * config_.ttl_us) : Some(times_.Guard() * 9 / 10);
  }

  void Start(int i, int64_t epoch) {
    Agent& agent = *agents_[i];
    if (agent.ranks)
      Violate(StrCat("agent ", i, " starts epoch ", epoch, " and has ranks of ", agent.ranks->epoch));
    agent.ranks = Ranks{epoch, next_ranks_++};
    if (++alive_[epoch] == 1) ++epochs_;
    if (alive_.size() > 1) {
      Violate(StrCat("at ", now_us_, " us ranks of epoch ", alive_.begin()->first, " and of epoch ",
                     alive_.rbegin()->first, " are alive"));
    }
    if (!Calm() && Chance(20)) {  // a rank fails by itself
      const int64_t id = agent.ranks->id, life = agent.life;
      In(Some(2'000'000), [this, i, id, life] {
        Agent& there = *agents_[i];
        if (!there.up || there.life != life || !there.ranks || there.ranks->id != id) return;
        there.member->OnRankFailed({0, 1, 0, false, "failed", "", ""}, ClockOf(there));
        EndRanks(i, Some(100'000));
        Settle(i);
      });
    }
  }

  void EndRanks(int i, int64_t in_us) {
    Agent& agent = *agents_[i];
    if (!agent.ranks) return;
    const int64_t id = agent.ranks->id, life = agent.life;
    In(in_us, [this, i, id, life] { RanksGone(i, id, life); });
  }

  void RanksGone(int i, int64_t id, int64_t life) {
    Agent& agent = *agents_[i];
    if (!agent.ranks || agent.ranks->id != id) return;
    if (--alive_[agent.ranks->epoch] == 0) alive_.erase(agent.ranks->epoch);
    agent.ranks.reset();
    if (!agent.up || agent.life != life) return;
    Arrive(i, life, [this](Agent& there) { there.member->OnRanksEnded(false, ClockOf(there)); });
  }

  // The guard process ends the ranks of an agent that is frozen or gone when their time has come.
  void Guard(int i, int64_t kill_at_us) {
    Agent& agent = *agents_[i];
    if (!agent.ranks || config_.broken.never_kills) return;
    const int64_t id = agent.ranks->id, life = agent.life;
    At(RealFor(agent, kill_at_us) + KillTime(), [this, i, id, life] { RanksGone(i, id, life); });
  }

  // ---- what goes wrong

  void Chaos() {
    if (Calm()) return Heal();
    const int i = static_cast<int>(random_.Below(agents_.size()));
    Agent& agent = *agents_[i];
    switch (random_.Below(6)) {
      case 0:
        if (agent.up) Crash(i);
        break;
      case 1:
        if (agent.up && agent.frozen_until_us <= now_us_) {
          Guard(i, agent.member->KillAtUs());
          agent.frozen_until_us = now_us_ + Some(3 * config_.ttl_us);
        }
        break;
      case 2:
        for (int j = 0; j < static_cast<int>(agents_.size()); ++j) {
          if (j != i && Chance(60)) cuts_.insert({std::min(i, j), std::max(i, j)});
        }
        break;
      case 3:
        cuts_.insert({kEtcd, i});
        break;
      case 4:
        cuts_.clear();
        break;
      default:
        if (agent.up && agent.frozen_until_us <= now_us_) Disconnect(i);
    }
    In(Some(700'000), [this] { Chaos(); });
  }

  void Crash(int i) {
    Agent& agent = *agents_[i];
    if (agent.ranks) {
      if (Chance(50)) {
        RanksGone(i, agent.ranks->id, -1);
      } else {
        Guard(i, agent.member->KillAtUs());
      }
    }
    agent.up = false;
    ++agent.life;
    // Its place is taken by a new process only when nothing of the old one is left on the host.
    Return(i);
  }
  void Return(int i) {
    In(Some(1'500'000), [this, i] { agents_[i]->ranks ? Return(i) : Boot(i, 0); });
  }

  void Heal() {
    cuts_.clear();
    for (const auto& agent : agents_) agent->frozen_until_us = std::min(agent->frozen_until_us, now_us_);
  }

  void Violate(std::string what) {
    if (violation_.empty()) violation_ = std::move(what);
  }

  static constexpr int kEtcd = -1;

  const SimConfig config_;
  SeededRandom random_;
  const ElasticTimes times_;
  int64_t now_us_ = 0, order_ = 0, steps_ = 0, epochs_ = 0, next_ranks_ = 1;
  int next_connection_ = 1;
  std::priority_queue<Event> queue_;
  std::vector<std::unique_ptr<Agent>> agents_;
  Etcd etcd_;
  std::set<std::pair<int, int>> cuts_;
  std::map<std::pair<int, int>, int64_t> last_arrival_;
  std::map<int64_t, int> alive_;  // epoch -> agents that have ranks of it
  std::string violation_;
};

}  // namespace overcap::elastic::sim
