// SPDX-License-Identifier: Apache-2.0
#include "net/tcp.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "sys/free_port.h"

namespace overcap {
namespace {

short WaitFor(const Fd& fd, short events) {
  pollfd entry{fd.Get(), events, 0};
  return poll(&entry, 1, 5000) == 1 ? entry.revents : 0;
}

TEST(Tcp, ConnectsToAListenerAtEveryAddressOfThisHost) {
  const auto listener = ListenTcp();
  ASSERT_TRUE(listener) << listener.error().message;
  std::vector<std::string> addresses = OwnAddresses();
  addresses.push_back("127.0.0.1");
  for (const std::string& address : addresses) {
    const auto client = BeginConnect(address, listener->port);
    ASSERT_TRUE(client) << client.error().message;
    ASSERT_TRUE(WaitFor(*client, POLLOUT)) << address;
    ASSERT_TRUE(ConnectOutcome(*client)) << address;
    ASSERT_TRUE(WaitFor(listener->fd, POLLIN));
    const auto accepted = AcceptTcp(listener->fd);
    ASSERT_TRUE(accepted && *accepted);
    EXPECT_EQ(address, LocalAddressOf(**accepted));
  }
}

TEST(Tcp, NobodyWaitsWhenNobodyConnects) {
  const auto listener = ListenTcp();
  ASSERT_TRUE(listener);
  const auto accepted = AcceptTcp(listener->fd);
  ASSERT_TRUE(accepted);
  EXPECT_FALSE(*accepted);
}

TEST(Tcp, ARefusedConnectionIsUnavailable) {
  const auto client = BeginConnect("127.0.0.1", FreePort());
  ASSERT_TRUE(client);
  ASSERT_TRUE(WaitFor(*client, POLLOUT));
  const auto outcome = ConnectOutcome(*client);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(ErrorCode::kUnavailable, outcome.error().code);
}

TEST(Tcp, ANameIsNoAddress) {
  const auto client = BeginConnect("localhost", 1);
  ASSERT_FALSE(client);
  EXPECT_EQ(ErrorCode::kUsage, client.error().code);
}

TEST(Tcp, AddressesNearOthersAreThoseOfTheSameNetwork) {
  EXPECT_TRUE(OwnAddressesNear(OwnAddresses()).empty());  // that would be this machine
  EXPECT_TRUE(OwnAddressesNear({}).empty());
  EXPECT_TRUE(OwnAddressesNear({"198.51.100.7", "2001:db8::7", "no address", ""}).empty());
}

TEST(Tcp, OwnAddressesAreNotLoopback) {
  for (const std::string& address : OwnAddresses()) EXPECT_FALSE(IsLoopback(address)) << address;
}

}  // namespace
}  // namespace overcap
