// SPDX-License-Identifier: Apache-2.0
// What every Rendezvous keeps; each implementation's test calls it with agents of one job that has not begun.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <poll.h>
#include <vector>

#include "elastic/rendezvous.h"
#include "sys/clock.h"

namespace overcap::elastic {

using RendezvousMaker = std::function<std::unique_ptr<Rendezvous>(const std::string& agent)>;

// Drives all of them until the condition holds; false after ten seconds.
inline bool DriveUntil(const std::vector<Rendezvous*>& all, const std::function<bool()>& condition) {
  const PosixClock clock;
  const int64_t until = clock.MonotonicUs() + 10'000'000;
  while (!condition()) {
    if (clock.MonotonicUs() > until) return false;
    std::vector<pollfd> fds;
    for (Rendezvous* each : all) (void)each->Prepare(&fds);
    (void)poll(fds.data(), fds.size(), 5);
    for (Rendezvous* each : all) EXPECT_TRUE(each->Act());
  }
  return true;
}

inline bool Leads(const Rendezvous& one) {
  return one.standing().kind == Standing::Kind::kLeads;
}
inline bool Follows(const Rendezvous& one) {
  return one.standing().kind == Standing::Kind::kFollows;
}

inline void KeepsTheRendezvousContract(const RendezvousMaker& make) {
  auto a = make("a"), b = make("b");
  // Exactly one leads, and the other is told where it is.
  ASSERT_TRUE(DriveUntil({a.get(), b.get()},
                         [&] { return (Leads(*a) && Follows(*b)) || (Leads(*b) && Follows(*a)); }));
  Rendezvous* leader = Leads(*a) ? a.get() : b.get();
  Rendezvous* other = Leads(*a) ? b.get() : a.get();
  EXPECT_GT(leader->standing().term, 0);
  EXPECT_TRUE(leader->Listener().Valid());
  EXPECT_EQ(other->standing().leader.port, leader->standing().leader.port);
  EXPECT_EQ(other->standing().leader.key.bytes, leader->standing().leader.key.bytes);
  EXPECT_EQ(leader->standing().record, ElasticRecord());
  // What it keeps is given back once it will outlive it.
  ElasticRecord record;
  record.term = leader->standing().term;
  record.epoch = 5;
  record.terms = "hash";
  leader->Keep(record);
  std::optional<ElasticRecord> kept;
  ASSERT_TRUE(DriveUntil({a.get(), b.get()}, [&] { return (kept = leader->TakeKept()).has_value(); }));
  EXPECT_EQ(*kept, record);
  EXPECT_FALSE(leader->TakeKept());
  // Who leaves makes room: the next leads in a later term, and finds the record.
  const int64_t term = leader->standing().term;
  leader->Leave();
  EXPECT_FALSE(Leads(*leader));
  other->LookAgain();
  ASSERT_TRUE(DriveUntil({other}, [&] { return Leads(*other); }));
  EXPECT_GT(other->standing().term, term);
  EXPECT_EQ(other->standing().record.epoch, 5);
  // A job that has ended is joined by nobody.
  record.ended = ElasticRecord::Ended{3, "over"};
  other->Keep(record);
  ASSERT_TRUE(DriveUntil({other}, [&] { return other->TakeKept().has_value(); }));
  other->Leave();
  auto late = make("late");
  ASSERT_TRUE(DriveUntil({late.get()}, [&] { return late->standing().kind == Standing::Kind::kFinished; }));
  EXPECT_EQ(late->standing().record.ended->status, 3);
  // Unless that was another job, and nothing else was there since: then it begins anew with higher numbers.
  late->StartOver();
  ASSERT_TRUE(DriveUntil({late.get()}, [&] { return Leads(*late); }));
  EXPECT_FALSE(late->standing().record.ended);
  EXPECT_EQ(late->standing().record.epoch, 5);
  EXPECT_EQ(late->standing().record.terms, "");
  record.epoch = 6;
  late->Keep(record);
  ASSERT_TRUE(DriveUntil({late.get()}, [&] { return late->TakeKept().has_value(); }));
  late->Leave();
  auto last = make("last");
  ASSERT_TRUE(DriveUntil({last.get()}, [&] { return last->standing().kind == Standing::Kind::kFinished; }));
}

}  // namespace overcap::elastic
