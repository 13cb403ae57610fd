// SPDX-License-Identifier: Apache-2.0
#include "elastic/place.h"

#include <gtest/gtest.h>

#include "base/text.h"

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

std::string TorchText(const TorchPlace& asked) {
  const auto meeting = TorchRendezvous(asked);
  if (!meeting) return meeting.error().message;
  RendezvousPlace place = meeting->place;
  EXPECT_TRUE(place.again);
  place.asked.clear();
  return meeting->master_port == 0 ? place.Text() : StrCat(place.Text(), " ", meeting->master_port);
}

TEST(RendezvousPlaces, AreReadAsTorchrunHasThem) {
  EXPECT_EQ(TorchText({}), "auto");
  EXPECT_EQ(TorchText({.backend = "c10d", .id = "x"}), "auto");  // one node meets no other
  EXPECT_EQ(TorchText({.backend = "c10d", .id = "x", .max_nodes = 2}), "auto:x");
  EXPECT_EQ(TorchText({.backend = "c10d", .endpoint = "localhost:0", .id = "x"}), "auto");
  EXPECT_EQ(TorchText({.backend = "c10d", .endpoint = "head", .id = "x"}), "tcp://head:29400/x-29400");
  EXPECT_EQ(TorchText({.backend = "etcd-v2", .endpoint = "e:1"}), "etcd://e:1/none");
}

TEST(RendezvousPlaces, AFixedMasterPortLeavesTheAgentsAnotherOne) {
  EXPECT_EQ(TorchText({.master_port = 29501}), "tcp://127.0.0.1:19501/none-29501 29501");
  EXPECT_EQ(TorchText({.master_port = 29501, .max_nodes = 2}), "auto 29501");
  EXPECT_EQ(TorchText({.id = "x", .master_addr = "head", .max_nodes = 2}), "tcp://head:19500/x-29500 29500");
  EXPECT_EQ(TorchText({.backend = "static", .endpoint = "head:1234", .max_nodes = 2}),
            "tcp://head:11234/none-1234 1234");
  EXPECT_EQ(TorchText({.master_addr = "::1", .master_port = 30}), "tcp://[::1]:10030/none-30 30");
  EXPECT_EQ(TorchText({.backend = "c10d", .master_port = 29501}),
            "auto");  // torchrun does not heed it either
  EXPECT_EQ(TorchRendezvous({.master_addr = "head", .max_nodes = 2})->place.Text(),
            "head:29500 (agents meet at port 19500)");
}

TEST(RendezvousPlaces, RefusalsNameTheFlagOfTorchrun) {
  EXPECT_EQ(TorchText({.backend = "etcd", .id = "x"}), "--rdzv-backend etcd needs --rdzv-endpoint HOST:PORT");
  EXPECT_EQ(TorchText({.backend = "zeus"}), "--rdzv-backend: 'zeus' is not c10d, etcd, etcd-v2 or static");
  EXPECT_EQ(TorchText({.backend = "c10d", .endpoint = "a:b"}), "--rdzv-endpoint: 'a:b' is no HOST:PORT");
  EXPECT_EQ(TorchText({.master_addr = "a b"}), "--master-addr: 'a b:29500' is no HOST:PORT");
}

TEST(RendezvousPlaces, AnyWordsOfTorchrunBecomeAnId) {
  EXPECT_EQ(RendezvousIdOf("job.2"), "job.2");
  for (const std::string& id :
       {std::string("my job 2"), std::string("../x"), std::string(300, 'y'), std::string()}) {
    EXPECT_TRUE(IsRendezvousId(RendezvousIdOf(id))) << id;
  }
  EXPECT_NE(RendezvousIdOf("my job 2"), RendezvousIdOf("my-job 2"));
}

}  // namespace
}  // namespace overcap::elastic
