// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/engine_client.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <poll.h>
#include <thread>

#include "net/frame.h"
#include "net/unix_socket.h"

namespace overcap {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kHalfAMinute = kEngineRetryTime;

TEST(EngineRetry, ARestartIsWaitedForHalfAMinute) {
  for (const auto trouble : {EngineTrouble::kNoEngine, EngineTrouble::kBroken, EngineTrouble::kCrowded}) {
    EXPECT_TRUE(DecideRetry(trouble, milliseconds(0), kHalfAMinute).again);
    EXPECT_TRUE(DecideRetry(trouble, milliseconds(29'999), kHalfAMinute).again);
    EXPECT_FALSE(DecideRetry(trouble, milliseconds(30'000), kHalfAMinute).again);
  }
}

TEST(EngineRetry, WhatCannotGetBetterIsNotAskedAgain) {
  for (const auto trouble : {EngineTrouble::kSilent, EngineTrouble::kRefused})
    EXPECT_FALSE(DecideRetry(trouble, milliseconds(0), kHalfAMinute).again);
}

TEST(EngineRetry, AClientThatTriesOnceTriesOnce) {
  EXPECT_FALSE(DecideRetry(EngineTrouble::kNoEngine, milliseconds(0), milliseconds(0)).again);
}

TEST(EngineRetry, PausesGrowAndTheLastTryIsAtTheLimit) {
  EXPECT_EQ(DecideRetry(EngineTrouble::kBroken, milliseconds(0), kHalfAMinute).pause, milliseconds(10));
  EXPECT_EQ(DecideRetry(EngineTrouble::kBroken, milliseconds(1600), kHalfAMinute).pause, milliseconds(200));
  EXPECT_EQ(DecideRetry(EngineTrouble::kBroken, milliseconds(20'000), kHalfAMinute).pause, milliseconds(500));
  EXPECT_EQ(DecideRetry(EngineTrouble::kBroken, milliseconds(29'900), kHalfAMinute).pause, milliseconds(100));
}

TEST(EngineRetry, AQuickRestartIsNotMentioned) {
  EXPECT_FALSE(DecideRetry(EngineTrouble::kBroken, milliseconds(999), kHalfAMinute).tell);
  EXPECT_TRUE(DecideRetry(EngineTrouble::kBroken, milliseconds(1000), kHalfAMinute).tell);
}

TEST(EngineRetry, TheUserMayNameAnotherTime) {
  EXPECT_EQ(EngineRetryTimeOf("0"), std::chrono::seconds(0));
  EXPECT_EQ(EngineRetryTimeOf("120"), std::chrono::seconds(120));
  for (const std::string_view text : {"", "-1", "3601", "1 day", "99999999999999999999"})
    EXPECT_EQ(EngineRetryTimeOf(text), kEngineRetryTime) << text;
}

// An engine of which the test says what it does with each connection.
class EngineClientTest : public testing::Test {
 protected:
  EngineClientTest() {
    char folder[] = "/tmp/overcap_client_XXXXXX";
    folder_ = mkdtemp(folder);
    listener_ = ListenUnix(Socket()).value();
  }
  ~EngineClientTest() override {
    if (engine_.joinable()) engine_.join();
    std::filesystem::remove_all(folder_);
  }

  std::string Socket() const { return folder_ + "/s"; }
  EngineClient Client(milliseconds retry_time = kHalfAMinute) const {
    return EngineClient(
        {.root = folder_, .binary = {}, .machine_json = {}, .socket = Socket(), .retry_time = retry_time});
  }
  Fd Accept() const {
    pollfd ready{listener_.Get(), POLLIN, 0};
    EXPECT_EQ(poll(&ready, 1, 30'000), 1);
    return std::move(**AcceptUnix(listener_));
  }
  static std::string Take(const Fd& connection) {
    return ReceiveFrame(connection, steady_clock::now() + std::chrono::seconds(30)).value_or("nothing");
  }
  static void Give(const Fd& connection, std::string_view reply) {
    EXPECT_TRUE(SendFrame(connection, reply, steady_clock::now() + std::chrono::seconds(30)));
  }
  void Engine(std::function<void()> act) { engine_ = std::thread(std::move(act)); }

  std::string folder_;
  Fd listener_;
  std::thread engine_;
};

TEST_F(EngineClientTest, ARequestWhoseAnswerIsCutOffIsSentAgainByteForByte) {
  std::vector<std::string> taken;
  Engine([&] {
    taken.push_back(Take(Accept()));
    const Fd second = Accept();
    taken.push_back(Take(second));
    Give(second, R"({"ok":{"id":"a"}})");
  });
  EngineClient client = Client();
  const auto reply = client.Call(R"({"op":"submit"})");
  engine_.join();
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(*reply, R"({"id":"a"})");
  EXPECT_EQ(taken, (std::vector<std::string>{R"({"op":"submit"})", R"({"op":"submit"})"}));
  EXPECT_TRUE(client.resent());
  EXPECT_FALSE(client.maybe_done());
}

TEST_F(EngineClientTest, ARefusalForTooManyConnectionsIsTriedAgainAndMeansThatNothingWasDone) {
  Engine([&] {
    {
      const Fd first = Accept();
      Give(
          first,
          R"({"error":{"code":"unavailable","message":"user 'ann' has 32 connections to the engine already"}})");
    }
    const Fd second = Accept();
    (void)Take(second);
    Give(second, R"({"ok":{}})");
  });
  EngineClient client = Client();
  EXPECT_TRUE(client.Call("{}"));
  EXPECT_FALSE(client.resent());
}

TEST_F(EngineClientTest, WhenItGivesUpItKnowsWhetherTheRequestMayHaveBeenDone) {
  Engine([&] { (void)Take(Accept()); });
  EngineClient client = Client(milliseconds(0));
  const auto reply = client.Call("{}");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(client.maybe_done());
  engine_.join();
  listener_.Reset();
  EXPECT_FALSE(client.Call("{}"));
  EXPECT_FALSE(client.maybe_done()) << "nobody listened";
}

TEST_F(EngineClientTest, ARefusalIsAnAnswer) {
  Engine([&] {
    const Fd only = Accept();
    (void)Take(only);
    Give(only, R"({"error":{"code":"unavailable","message":"the disk is full","hint":""}})");
  });
  EngineClient client = Client();
  const auto reply = client.Call("{}");
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().message, "the disk is full");
  EXPECT_FALSE(client.maybe_done());
}

TEST_F(EngineClientTest, AWaitIsSentAgainWithTheTimeThatIsLeft) {
  std::vector<std::string> taken;
  Engine([&] {
    taken.push_back(Take(Accept()));
    const Fd second = Accept();
    taken.push_back(Take(second));
    Give(second, R"({"ok":{}})");
  });
  EngineClient client = Client();
  int left = 10;
  EXPECT_TRUE(client.Call([&] { return EngineRequest{std::to_string(left--), std::chrono::seconds(10)}; }));
  engine_.join();
  EXPECT_EQ(taken, (std::vector<std::string>{"10", "9"}));
}

}  // namespace
}  // namespace overcap
