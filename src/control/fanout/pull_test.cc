// SPDX-License-Identifier: Apache-2.0
// What a node that pulls a store does, without a store: a server on loopback, a folder of the test.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "control/fanout/listed_store.h"
#include "control/fanout/tidy_folder.h"
#include "net/testing/http_test_server.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

const StoredObjectInfo kObject{"a/b", 10, 0, "tag", ""};

class Listed : public testing::Test {
 protected:
  ListedStore Make(HttpTestServer* server) {
    ListedStore::Settings settings{"s3://bucket", ""};
    settings.tuning.retry = {.first_wait_us = 1000, .deadline_us = 300'000};
    settings.tuning.unreached_deadline_us = 300'000;
    return ListedStore(
        {kObject},
        [this, server](const std::string& key) -> Result<std::string> {
          return StrCat(server->origin().Text(), "/", key, "?sig=", ++asked_);
        },
        settings);
  }

  std::atomic<int> asked_ = 0;
  std::string out_;
};

TEST_F(Listed, RangesComeByUrlsThatAreUsedAgainAndOfTheVersionThatWasListed) {
  HttpTestServer server([](const HttpTestRequest& request, HttpTestPeer& peer) {
    EXPECT_EQ(request.target, "/a/b?sig=1");
    EXPECT_EQ(request.Header("if-match"), "\"tag\"");
    if (request.Header("range").empty()) return peer.Answer(200, "0123456789");
    EXPECT_EQ(request.Header("range"), "bytes=4-6");
    peer.Answer(206, "456", {{"content-range", "bytes 4-6/10"}});
  });
  ListedStore store = Make(&server);
  ASSERT_TRUE(store.GetIntoIf(kObject, 0, 10, &out_));
  EXPECT_EQ(out_, "0123456789");
  ASSERT_TRUE(store.GetIntoIf(kObject, 4, 3, &out_));
  EXPECT_EQ(out_, "456");
  EXPECT_EQ(asked_, 1);
}

TEST_F(Listed, AUrlThatHasExpiredIsAskedForAnewOnce) {
  HttpTestServer server([](const HttpTestRequest& request, HttpTestPeer& peer) {
    request.target == "/a/b?sig=1" ? peer.Answer(403, "expired") : peer.Answer(200, "0123456789");
  });
  ListedStore store = Make(&server);
  ASSERT_TRUE(store.GetIntoIf(kObject, 0, 10, &out_));
  EXPECT_EQ(asked_, 2);
  HttpTestServer never([](const HttpTestRequest&, HttpTestPeer& peer) { peer.Answer(403, "no"); });
  ListedStore refused = Make(&never);
  const auto got = refused.GetIntoIf(kObject, 0, 10, &out_);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kDenied);
  EXPECT_EQ(got.error().message.find("sig="), std::string::npos);
  EXPECT_EQ(asked_, 4);
}

TEST_F(Listed, AnObjectThatWasReplacedOrRemovedIsAConflict) {
  for (const int status : {404, 412}) {
    HttpTestServer server([&](const HttpTestRequest&, HttpTestPeer& peer) { peer.Answer(status, ""); });
    const auto got = Make(&server).GetIntoIf(kObject, 0, 10, &out_);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::kConflict) << status;
  }
}

TEST_F(Listed, ABusyServiceIsAskedAgainAndThenGivenUp) {
  std::atomic<int> left = 3;
  HttpTestServer server([&](const HttpTestRequest&, HttpTestPeer& peer) {
    left-- > 0 ? peer.Answer(503, "") : peer.Answer(200, "0123456789");
  });
  ListedStore store = Make(&server);
  EXPECT_TRUE(store.GetIntoIf(kObject, 0, 10, &out_));
  left = 1'000'000;
  const auto got = store.GetIntoIf(kObject, 0, 10, &out_);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
}

TEST_F(Listed, ALoginPageIsNoObject) {
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Answer(200, "<html>log in", {{"content-type", "text/html"}});
  });
  const auto got = Make(&server).GetIntoIf(kObject, 0, 10, &out_);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
}

TEST(TidyFolder, LeavesTheFilesThatAreNamedAndFollowsNoLink) {
  const TempFolder temp;
  const std::string at = temp.Path() + "/target";
  for (const char* folder : {"/target/sub/deep", "/target/gone/deep", "/target/.overcap/fanout", "/out"})
    ASSERT_TRUE(PosixFiles().MakeFolders(temp.Path() + folder));
  const auto write = [&](const std::string& path) {
    ASSERT_TRUE(PosixFiles().WriteAtomic(temp.Path() + path, "x", false));
  };
  for (const char* path : {"/target/sub/deep/a", "/target/sub/other", "/target/gone/deep/b", "/target/dir",
                           "/target/.overcap/fanout/seen", "/target/sub/.overcap-part-1", "/out/kept"})
    write(path);
  ASSERT_EQ(symlink((temp.Path() + "/out").c_str(), (at + "/link").c_str()), 0);
  const std::set<std::string> wanted = {"sub/deep/a", "dir/x", "link/kept"};
  ASSERT_TRUE(TidyFolder(at, wanted, Partials::kStay));
  for (const char* there : {"/sub/deep/a", "/.overcap/fanout/seen", "/sub/.overcap-part-1"})
    EXPECT_TRUE(PosixFiles().Exists(at + there)) << there;
  for (const char* gone : {"/sub/other", "/gone", "/dir", "/link"})
    EXPECT_FALSE(PosixFiles().Exists(at + gone)) << gone;
  EXPECT_TRUE(PosixFiles().Exists(temp.Path() + "/out/kept"));
  ASSERT_TRUE(TidyFolder(at, wanted, Partials::kGo));
  EXPECT_FALSE(PosixFiles().Exists(at + "/sub/.overcap-part-1"));
}

}  // namespace
}  // namespace overcap
