// SPDX-License-Identifier: Apache-2.0
#include "net/resolve.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

namespace overcap {
namespace {

std::string Addresses(const std::string& host) {
  const auto pipe = ResolveBeside(host);
  if (!pipe) return pipe.error().message;
  std::string text;
  char chunk[4096];
  for (;;) {
    pollfd one{pipe->Get(), POLLIN, 0};
    if (poll(&one, 1, 20'000) <= 0) return "no answer";
    const ssize_t size = read(pipe->Get(), chunk, sizeof chunk);
    if (size <= 0) return text;
    text.append(chunk, size);
  }
}

TEST(ResolveBeside, GivesTheAddressesOfAHost) {
  EXPECT_NE(Addresses("localhost").find("127.0.0.1\n"), std::string::npos);
  EXPECT_EQ(Addresses("192.0.2.7"), "192.0.2.7\n");
}

TEST(ResolveBeside, OfAHostThatNobodyKnowsThereIsNone) {
  EXPECT_EQ(Addresses("a.name.that.is.invalid"), "");
}

TEST(ResolveBeside, MayBeLeftAlone) {
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(ResolveBeside("localhost"));
}

}  // namespace
}  // namespace overcap
