// SPDX-License-Identifier: Apache-2.0
#include "stores/location.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

std::string Again(std::string_view text) {
  const Result<StoreLocation> location = ParseStoreLocation(text);
  return location ? location->Text() : "error: " + location.error().message;
}

TEST(StoreLocation, KnowsEveryKind) {
  const auto s3 = ParseStoreLocation("s3://lab-data/qd/x");
  ASSERT_TRUE(s3);
  EXPECT_EQ(s3->kind, StoreKind::kS3);
  EXPECT_EQ(s3->bucket, "lab-data");
  EXPECT_EQ(s3->prefix, "qd/x");
  const auto azure = ParseStoreLocation("az://account1/cont/a/b/");
  ASSERT_TRUE(azure);
  EXPECT_EQ(azure->account, "account1");
  EXPECT_EQ(azure->bucket, "cont");
  EXPECT_EQ(azure->prefix, "a/b");
  EXPECT_TRUE(azure->open_end);
  const auto ssh = ParseStoreLocation("ssh://me@login.lab:2222/data/x");
  ASSERT_TRUE(ssh);
  EXPECT_EQ(ssh->user, "me");
  EXPECT_EQ(ssh->host, "login.lab");
  EXPECT_EQ(ssh->port, 2222);
  EXPECT_EQ(ssh->path, "/data/x");
  EXPECT_EQ(ParseStoreLocation("ssh://login/~/data")->path, "~/data");
  EXPECT_EQ(ParseStoreLocation("ssh://[::1]:22/x")->host, "[::1]");
  EXPECT_EQ(ParseStoreLocation("../data")->path, "../data");
}

TEST(StoreLocation, TextsComeBack) {
  for (const char* text : {"s3://lab-data", "s3://lab-data/qd", "az://account1/cont",
                           "az://account1/cont/a b/\xc3\xa4", "ssh://host/x", "ssh://host/~/x",
                           "ssh://host/~", "ssh://host/", "ssh://a@host:22/x", "/nfs/x", "./x", "mem:x"})
    EXPECT_EQ(Again(text), text);
  EXPECT_EQ(Again("s3://lab-data//a///b/"), "s3://lab-data/a/b");
  EXPECT_EQ(Again("sftp://host/x"), "ssh://host/x");
}

TEST(StoreLocation, RefusesWhatIsNone) {
  for (const char* text : {"",
                           "s3://",
                           "s3://ab",
                           "s3://UPPER",
                           "s3://-abc",
                           "s3://abc-",
                           "s3://a_bc",
                           "s3://bucket/../x",
                           "s3://bucket/./x",
                           "az://",
                           "az://account1",
                           "az://account1/",
                           "az://Account/cont",
                           "az://account1/co.nt",
                           "az://ac-count/cont",
                           "ssh://host",
                           "ssh:///x",
                           "ssh://-oProxyCommand=x/y",
                           "ssh://a b/x",
                           "ssh://-x@host/y",
                           "ssh://host:0/x",
                           "ssh://host:65536/x",
                           "ssh://host:x/x",
                           "gs://bucket/x",
                           "http://host/x"}) {
    const auto location = ParseStoreLocation(text);
    ASSERT_FALSE(location) << text;
    EXPECT_EQ(location.error().code, ErrorCode::kUsage) << text;
    EXPECT_FALSE(location.error().hint.empty()) << text;
  }
}

TEST(StoreLocation, DoesNotRepeatKeys) {
  for (const char* text : {"s3://AKIAKEY:SECRETWORD@bucket/x", "ssh://me:SECRETWORD@host/x",
                           "az://acc:SECRETWORD@x/y", "az://account1/cont?sv=2020&sig=SECRETWORD"}) {
    const auto location = ParseStoreLocation(text);
    ASSERT_FALSE(location) << text;
    EXPECT_EQ(location.error().message.find("SECRETWORD"), std::string::npos) << location.error().message;
    EXPECT_EQ(location.error().hint.find("SECRETWORD"), std::string::npos);
  }
}

TEST(StoreLocation, GoesUpAndDown) {
  const auto location = *ParseStoreLocation("s3://bucket/a/b");
  EXPECT_EQ(location.Name(), "b");
  EXPECT_EQ(location.Above().Text(), "s3://bucket/a");
  EXPECT_EQ(location.Above().Above().Text(), "s3://bucket");
  EXPECT_EQ(location.Above().Above().Name(), "");
  EXPECT_EQ(location.Above().Above().Below("x/y").Text(), "s3://bucket/x/y");
  EXPECT_EQ(ParseStoreLocation("/a/b/")->Name(), "b");
  EXPECT_EQ(ParseStoreLocation("/a/b/")->Above().Text(), "/a");
  EXPECT_EQ(ParseStoreLocation("/a")->Above().Text(), "/");
  EXPECT_EQ(ParseStoreLocation("/")->Below("x").Text(), "/x");
  EXPECT_EQ(ParseStoreLocation("a")->Above().Text(), ".");
  EXPECT_EQ(ParseStoreLocation("ssh://h/~/a")->Above().Text(), "ssh://h/~");
  EXPECT_EQ(ParseStoreLocation("ssh://h/~")->Below("a").Text(), "ssh://h/~/a");
}

TEST(StoreLocation, NamesOfTheConfiguration) {
  EXPECT_EQ(SplitStoreName("data").name, "data");
  EXPECT_EQ(SplitStoreName("data:x/y").name, "data");
  EXPECT_EQ(SplitStoreName("data:x/y").path, "x/y");
  for (const char* text : {"", "./data", "/data", "a/b", "s3://x", ".data", "-x", "a b"})
    EXPECT_EQ(SplitStoreName(text).name, "") << text;
}

}  // namespace
}  // namespace overcap
