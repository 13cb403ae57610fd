// SPDX-License-Identifier: Apache-2.0
// Copies, lists and removals on services that sort, page and forget in their own ways.
#include "stores/s3/testing/odd_service.h"

#include <gtest/gtest.h>
#include <set>

#include "base/text.h"
#include "control/transfer/folder_view.h"
#include "control/transfer/transfer.h"
#include "stores/mem/mem_store.h"
#include "stores/s3/s3_store.h"

namespace overcap {
namespace {

constexpr const char* kWide = "\xef\xbc\x81";
constexpr const char* kEmoji = "\xf0\x9f\x98\x80";

std::unique_ptr<S3Store> Open(const std::string& endpoint, int page_size) {
  S3Access access;
  access.endpoint = endpoint;
  access.access_key = "KEY", access.secret = "SECRET";
  S3StoreOptions options;
  options.keys = KeyRule::kAny;
  options.tuning.page_size = page_size;
  options.tuning.retry = {1000, 2000, 1'000'000};
  return std::move(*S3Store::Open(access, "lab", "pre", options));
}

MemStore Memory() {
  return MemStore("", std::make_shared<MemStore::Content>(), KeyRule::kAny);
}

// The reverse of what is expected: every page boundary is in the wrong place.
bool Backwards(const std::string& a, const std::string& b) {
  return b < a;
}

class AnotherOrder : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 30; ++i)
      for (const char* name : {kWide, kEmoji, "a/"}) ASSERT_TRUE(here_.Put(StrCat(name, 100 + i), "x"));
  }

  MemStore here_ = Memory();
  OddService service_{{.before = Backwards}};
  std::unique_ptr<S3Store> there_ = Open(service_.endpoint(), 7);
};

TEST_F(AnotherOrder, CopiesCompareAndRemoveExtraAsElsewhere) {
  service_.Put("pre/extra", "x");
  service_.Put("pre/a/099", "x");
  service_.Put(StrCat("pre/", kEmoji, 110), "other size");
  const auto first = TransferAll(here_, *there_, {.remove_extra = true});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->copied + first->same, 90);
  EXPECT_EQ(first->failed, 0);
  EXPECT_EQ(first->removed, 2);
  EXPECT_EQ(service_.Keys().size(), 90u);
  const auto second = TransferAll(here_, *there_, {.remove_extra = true});
  EXPECT_EQ(second->same, 90);
  EXPECT_EQ(second->copied + second->removed, 0);
  const auto compared = CompareAll(here_, *there_, {});
  ASSERT_TRUE(compared) << compared.error().message;
  EXPECT_EQ(compared->same, 90);
  EXPECT_EQ(compared->missing + compared->extra + compared->different + compared->failed, 0);
  MemStore back = Memory();
  EXPECT_EQ(TransferAll(*there_, back, {})->copied, 90);
  EXPECT_EQ(back.ListAll("")->size(), 90u);
  const auto removed = RemoveAll(*there_, "", {});
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(service_.Keys(), std::vector<std::string>());
}

TEST_F(AnotherOrder, EachNameOfALevelIsToldOnce) {
  ASSERT_TRUE(TransferAll(here_, *there_, {}));
  for (const bool skip : {false, true}) {
    std::multiset<std::string> names;
    const auto visited = VisitLevel(*there_, skip, [&](const FolderLine& line) { names.insert(line.name); });
    ASSERT_TRUE(visited) << visited.error().message;
    EXPECT_EQ(names.size(), 61u);
    EXPECT_EQ(names.count("a/"), 1u);
  }
}

// It takes no key that is not there for a place to go on.
TEST(OddService, ALevelIsReadToItsEndWhereNothingCanBeSkipped) {
  OddService service({.begins_again = true});
  for (int i = 0; i < 50; ++i) service.Put(StrCat("pre/many/", 100 + i), "x");
  for (const char* key : {"pre/a", "pre/z/1"}) service.Put(key, "x");
  std::vector<std::string> names;
  const auto store = Open(service.endpoint(), 10);
  ASSERT_TRUE(VisitLevel(*store, true, [&](const FolderLine& line) { names.push_back(line.name); }));
  EXPECT_EQ(names, (std::vector<std::string>{"a", "many/", "z/"}));
  EXPECT_LE(service.lists(), 8);
}

TEST(OddService, WhatAListForgotIsRemovedToo) {
  OddService service({.forgets_in_lists = true});
  for (int i = 0; i < 200; ++i) service.Put(StrCat("pre/k", 1000 + i), "x");
  const auto store = Open(service.endpoint(), 10);
  const auto report = RemoveAll(*store, "", {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->removed, 200);
  EXPECT_EQ(service.Keys(), std::vector<std::string>());
}

// versitygw tells names that XML cannot hold as others, which are not there.
TEST(OddService, WhatStaysListedAfterItsRemovalIsNamed) {
  HttpTestServer server([](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.method == "DELETE") return peer.Answer(204, "");
    peer.Answer(
        200, "<ListBucketResult><Contents><Key>pre/ghost</Key><Size>1</Size></Contents></ListBucketResult>");
  });
  const auto store = Open(server.origin().Text(), 10);
  const auto report = RemoveAll(*store, "", {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "'ghost' was removed, but the service of 's3://lab/pre' still lists it");
}

TEST(OddService, ADryRunNamesWhatTheServiceCannotTake) {
  OddService service({});
  MemStore here = Memory();
  for (const char* key : {"good", "latin-\xe9"}) ASSERT_TRUE(here.Put(key, "x"));
  std::vector<std::string> told;
  TransferOptions options{.dry_run = true};
  options.step = [&](const TransferStep& step) { told.push_back(step.key); };
  const auto report = TransferAll(here, *Open(service.endpoint(), 10), options);
  ASSERT_TRUE(report);
  EXPECT_EQ(told, std::vector<std::string>{"good"});
  EXPECT_EQ(report->failed, 1);
  ASSERT_EQ(report->problems.size(), 1u);
  EXPECT_EQ(report->problems[0].key, "latin-\xe9");
  EXPECT_EQ(report->problems[0].error.code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace overcap
