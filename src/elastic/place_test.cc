// SPDX-License-Identifier: Apache-2.0
#include "elastic/place.h"

#include <gtest/gtest.h>

namespace overcap::elastic {
namespace {

TEST(RendezvousPlaces, AreWrittenAsTheyAreRead) {
  for (const char* text :
       {"auto", "auto:x-1", "tcp://head:29400/job", "etcd://a:2379,b:1/job.2", "etcds://[::1]:5/x"}) {
    const auto place = ParseRendezvous(text);
    ASSERT_TRUE(place) << text;
    EXPECT_EQ(place->Text(), text);
  }
  EXPECT_EQ(ParseRendezvous("etcd://a,b/x")->Text(), "etcd://a:2379,b:2379/x");
}

TEST(RendezvousPlaces, WhatIsNoneIsRefused) {
  for (const char* text :
       {"", "auto:", "auto:a/b", "tcp://a:1", "tcp://a/x", "tcp://a:1,b:2/x", "tcp://a:0/x", "etcd:///x",
        "etcd://a b/x", "etcd://a:1/../x", "etcd://u:p@a/x", "http://a/x", "tcp://[::1/x"}) {
    EXPECT_FALSE(ParseRendezvous(text)) << text;
  }
}

TEST(RendezvousPlaces, AreReadAsTorchrunHasThem) {
  EXPECT_EQ(TorchRendezvous("", "", "")->Text(), "auto");
  EXPECT_EQ(TorchRendezvous("c10d", "", "x")->Text(), "auto:x");
  EXPECT_EQ(TorchRendezvous("c10d", "head", "x")->Text(), "tcp://head:29400/x");
  EXPECT_EQ(TorchRendezvous("etcd-v2", "e:1", "")->Text(), "etcd://e:1/none");
  EXPECT_FALSE(TorchRendezvous("etcd", "", "x"));
  EXPECT_FALSE(TorchRendezvous("zeus", "e", "x"));
  EXPECT_FALSE(TorchRendezvous("c10d", "e", "a b"));
}

}  // namespace
}  // namespace overcap::elastic
