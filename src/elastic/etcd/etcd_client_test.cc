// SPDX-License-Identifier: Apache-2.0
#include "elastic/etcd/etcd_client.h"

#include <gtest/gtest.h>

#include "net/tcp.h"

namespace overcap::elastic {
namespace {

const PosixClock kClock;
constexpr int64_t kCallUs = 4'000'000;

// Listeners that take a connection and never say a word.
class Mutes {
 public:
  explicit Mutes(int count) {
    for (int i = 0; i < count; ++i) {
      auto listening = ListenTcp();
      if (!listening) continue;
      options_.endpoints.emplace_back("127.0.0.1", listening->port);
      listeners_.push_back(std::move(listening->fd));
    }
    options_.call_us = kCallUs;
  }
  // How long a call takes that nobody answers.
  int64_t TakenUs(EtcdClient* client) const {
    const int64_t begin_us = kClock.MonotonicUs();
    const auto answer = client->RenewLease(1);
    EXPECT_FALSE(answer);
    if (!answer) {
      EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
      for (const auto& [host, port] : options_.endpoints) {
        EXPECT_NE(answer.error().message.find(std::to_string(port)), std::string::npos)
            << answer.error().message;
      }
    }
    return kClock.MonotonicUs() - begin_us;
  }
  const EtcdOptions& options() const { return options_; }

 private:
  std::vector<Fd> listeners_;
  EtcdOptions options_;
};

TEST(EtcdClient, AMemberThatSaysNothingIsNotWaitedForWhenThereAreOthers) {
  const Mutes mutes(3);
  EtcdClient client(mutes.options(), kClock);
  EXPECT_LT(mutes.TakenUs(&client), kCallUs);  // of all three
}

}  // namespace
}  // namespace overcap::elastic
