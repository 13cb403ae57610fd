// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/head_search.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "net/tcp.h"
#include "sys/clock.h"
#include "sys/free_port.h"

namespace overcap {
namespace {

constexpr int64_t kLimitUs = 5'000'000;

// Somebody who listens and knows a key; lets the search go on until it has come to an end.
struct Head {
  TcpListener listener = std::move(*ListenTcp());
  LinkKey key;
  SeededRandom random{7};
  Fd connection;
  std::unique_ptr<Handshake> handshake;

  void Answer(HeadSearch* search) {
    const PosixClock clock;
    while (!search->Found() && !search->Failed()) {
      std::vector<pollfd> fds;
      search->AddFds(&fds);
      fds.push_back({listener.fd.Get(), POLLIN, 0});
      if (connection) fds.push_back({connection.Get(), POLLIN, 0});
      poll(fds.data(), fds.size(), 50);
      auto accepted = AcceptTcp(listener.fd);
      if (accepted && *accepted && !connection) {
        connection = std::move(**accepted);
        handshake = std::make_unique<Handshake>(Handshake::Role::kHead, key, random);
      }
      if (connection && !handshake->Step(connection)) connection.Reset();
      search->Step(clock.MonotonicUs());
    }
  }
};

TEST(HeadSearch, FindsTheHeadThatKnowsTheKey) {
  SeededRandom random(1);
  Head head;
  head.key = LinkKey::Make(random);
  const LaunchContact contact{"id", head.listener.port, {"192.0.2.1", "127.0.0.1"}, "", "", 0, 0};
  HeadSearch search(contact, head.key, random, PosixClock().MonotonicUs(), kLimitUs);
  head.Answer(&search);
  ASSERT_TRUE(search.Found());
  EXPECT_EQ("127.0.0.1", LocalAddressOf(search.TakeConnection()));
}

TEST(HeadSearch, DoesNotTakeSomebodyElseForIt) {
  SeededRandom random(1);
  Head head;
  head.key = LinkKey::Make(random);
  const LaunchContact contact{"id", head.listener.port, {"127.0.0.1"}, "", "", 0, 0};
  HeadSearch search(contact, LinkKey::Make(random), random, PosixClock().MonotonicUs(), kLimitUs);
  head.Answer(&search);
  EXPECT_TRUE(search.Failed());
  EXPECT_NE(std::string::npos, search.why().find("127.0.0.1"));
}

TEST(HeadSearch, FindsItByItsNameWhenNoAddressLeadsThere) {
  SeededRandom random(1);
  Head head;
  head.key = LinkKey::Make(random);
  const LaunchContact contact{"id", head.listener.port, {}, "localhost", "", 0, 0};
  HeadSearch search(contact, head.key, random, PosixClock().MonotonicUs(), kLimitUs);
  head.Answer(&search);
  EXPECT_TRUE(search.Found()) << search.why();
}

TEST(HeadSearch, GivesUpAtOnceWhenEverybodyRefuses) {
  SeededRandom random(1);
  Head nobody;
  const LaunchContact contact{"id", FreePort(), {"127.0.0.1"}, "", "", 0, 0};
  const int64_t begun_us = PosixClock().MonotonicUs();
  HeadSearch search(contact, LinkKey::Make(random), random, begun_us, kLimitUs);
  nobody.Answer(&search);
  EXPECT_TRUE(search.Failed());
  EXPECT_LT(PosixClock().MonotonicUs() - begun_us, kLimitUs / 2);
}

TEST(HeadSearch, GivesUpAtItsLimit) {
  SeededRandom random(1);
  Head deaf;  // accepts, and says nothing
  const LaunchContact contact{"id", deaf.listener.port, {"127.0.0.1"}, "", "", 0, 0};
  HeadSearch search(contact, LinkKey::Make(random), random, 1'000'000, kLimitUs);
  EXPECT_FALSE(search.Failed());
  search.Step(1'000'000 + kLimitUs);
  EXPECT_TRUE(search.Failed());
}

}  // namespace
}  // namespace overcap
