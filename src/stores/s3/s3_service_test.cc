// SPDX-License-Identifier: Apache-2.0
// How requests are sent, and sent again, against a server that does what the test says.
#include "stores/s3/s3_service.h"

#include <atomic>
#include <gtest/gtest.h>

#include "base/text.h"
#include "net/http/http_date.h"
#include "net/testing/http_test_server.h"
#include "stores/s3/s3_store.h"

namespace overcap {
namespace {

using Handler = HttpTestServer::Handler;
constexpr const char* kSlowDown = "<Error><Code>SlowDown</Code></Error>";

class S3Requests : public testing::Test {
 protected:
  void Serve(Handler handler) { server_ = std::make_unique<HttpTestServer>(std::move(handler)); }
  S3Access Access() const {
    S3Access access;
    access.endpoint = server_->origin().Text();
    access.access_key = "KEY", access.secret = "SECRET", access.session_token = "TOKEN";
    return access;
  }
  S3Tuning Quick() const {
    S3Tuning tuning;
    tuning.retry = {1000, 2000, 5'000'000};
    return tuning;
  }
  std::unique_ptr<S3Store> Open() {
    S3StoreOptions options;
    options.tuning = Quick();
    return std::move(*S3Store::Open(Access(), "lab", "pre", options));
  }

  std::unique_ptr<HttpTestServer> server_;
};

TEST_F(S3Requests, AreSignedAndSayWhereTheObjectIs) {
  std::string seen;
  Serve([&](const HttpTestRequest& request, HttpTestPeer& peer) {
    seen = StrCat(request.method, " ", request.target, "|", request.Header("x-amz-security-token"), "|",
                  request.Header("x-amz-content-sha256").size(), "|",
                  request.Header("authorization").substr(0, 30));
    peer.Answer(200, "");
  });
  ASSERT_TRUE(Open()->Put("a/b", "x"));
  EXPECT_EQ(seen, "PUT /lab/pre/a/b|TOKEN|64|AWS4-HMAC-SHA256 Credential=KE");
}

// Where requests of this bucket go, or what is wrong: without certificates on the machine nothing opens.
std::string EndpointOf(const S3Access& access, const std::string& bucket) {
  const PosixClock clock;
  const auto service = S3Service::Open(access, bucket, clock);
  return service ? (*service)->EndpointText() : service.error().message;
}

TEST_F(S3Requests, GoToTheBucketsOwnHostUnlessItIsAnAddress) {
  S3Access access;
  access.endpoint = "https://s3.lab:9000";
  EXPECT_EQ(EndpointOf(access, "bucket"), "https://bucket.s3.lab:9000");
  EXPECT_EQ(EndpointOf(access, "dotted.name"), "https://s3.lab:9000");
  access.path_style = true;
  EXPECT_EQ(EndpointOf(access, "bucket"), "https://s3.lab:9000");
  access = {};
  access.region = "eu-west-1";
  EXPECT_EQ(EndpointOf(access, "bucket"), "https://bucket.s3.eu-west-1.amazonaws.com");
  access.region = "cn-north-1";
  EXPECT_EQ(EndpointOf(access, "bucket"), "https://bucket.s3.cn-north-1.amazonaws.com.cn");
  access.endpoint = "s3.lab";
  EXPECT_FALSE(S3Service::Open(access, "bucket", PosixClock()));
}

TEST_F(S3Requests, AreSentAgainWhenTheServiceIsBusy) {
  std::atomic<int> count{0};
  Serve([&](const HttpTestRequest&, HttpTestPeer& peer) {
    switch (count++) {
      case 0:
        return peer.Answer(503, kSlowDown);
      case 1:
        return peer.Answer(500, "<html>oops</html>");
      case 2:
        return peer.Reset();
      case 3:
        return peer.Answer(429, "");
      default:
        peer.Answer(200, "here");
    }
  });
  EXPECT_EQ(*Open()->Get("a"), "here");
  EXPECT_EQ(count, 5);
}

TEST_F(S3Requests, AreNotSentAgainWhenRefused) {
  for (const int status : {400, 401, 403, 404, 405, 409, 411, 412, 501}) {
    std::atomic<int> count{0};
    Serve([&](const HttpTestRequest&, HttpTestPeer& peer) {
      ++count;
      peer.Answer(status, "<Error><Code>Whatever</Code></Error>");
    });
    EXPECT_FALSE(Open()->Get("a"));
    EXPECT_EQ(count, 1) << status;
  }
}

TEST_F(S3Requests, AWebPageIsNoAnswerOfS3) {
  Serve([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>");
  });
  const auto store = Open();
  for (const Error& error :
       {store->Get("a").error(), store->List("", "").error(), store->Put("a", "x").error()}) {
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_NE(error.message.find("does not answer as an S3 service does"), std::string::npos)
        << error.message;
  }
}

TEST_F(S3Requests, GiveUpAtTheDeadline) {
  Serve([](const HttpTestRequest&, HttpTestPeer& peer) { peer.Answer(503, kSlowDown); });
  S3StoreOptions options;
  options.tuning.retry = {1000, 2000, 50'000};
  const auto store = S3Store::Open(Access(), "lab", "", options);
  const auto got = (*store)->Get("a");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(got.error().message, "the service of 's3://lab' is not able to read now: SlowDown");
}

TEST_F(S3Requests, ATruncatedBodyIsAskedForAgain) {
  std::atomic<int> count{0};
  Serve([&](const HttpTestRequest&, HttpTestPeer& peer) {
    if (count++ > 0) return peer.Answer(200, "all of it");
    peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nall");
    peer.Close();
  });
  EXPECT_EQ(*Open()->Get("a"), "all of it");
}

TEST_F(S3Requests, ACreateWhoseAnswerWasLostHasWon) {
  std::atomic<int> puts{0};
  std::string mark;
  Serve([&](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.method == "HEAD")
      return peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nx-amz-meta-overcap-put: " + mark +
                       "\r\n\r\n");
    EXPECT_EQ(request.Header("if-none-match"), "*");
    if (puts++ > 0) return peer.Answer(412, "<Error><Code>PreconditionFailed</Code></Error>");
    mark = request.Header("x-amz-meta-overcap-put");
    peer.Reset();
  });
  EXPECT_TRUE(Open()->Put("a", "x", PutMode::kCreate));
  EXPECT_EQ(puts, 2);
}

TEST_F(S3Requests, ACreateThatCameTooLateHasLost) {
  Serve([&](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.method == "HEAD")
      return peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nx-amz-meta-overcap-put: other\r\n\r\n");
    peer.Answer(412, "");
  });
  const auto put = Open()->Put("a", "x", PutMode::kCreate);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().message, "'a' is already in store 's3://lab/pre'");
}

// By claim from then on; a put that may replace stays what it is.
TEST_F(S3Requests, AServiceWithoutConditionsIsRememberedForCreatesOnly) {
  std::atomic<int> puts{0};
  Serve([&](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.method == "PUT" && !request.Header("if-none-match").empty()) return peer.Answer(501, "");
    if (request.method == "PUT" && request.target == "/lab/pre/denied") {
      ++puts;
      return peer.Answer(403, "<Error><Code>AccessDenied</Code></Error>");
    }
    if (request.method == "HEAD") return peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    peer.Answer(200, "");
  });
  const auto store = Open();
  EXPECT_EQ(store->Put("there", "x", PutMode::kCreate).error().code, ErrorCode::kConflict);
  EXPECT_EQ(store->Put("denied", "x").error().code, ErrorCode::kDenied);
  EXPECT_EQ(puts, 1);
}

TEST_F(S3Requests, WhatCameBackIsComparedWithWhatWasWritten) {
  std::string hash;
  Serve([&](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.method == "PUT") {
      hash = request.Header("x-amz-meta-overcap-sha256");
      return peer.Answer(200, "");
    }
    peer.Answer(200, "altered", {{"x-amz-meta-overcap-sha256", hash}});
  });
  const auto store = Open();
  ASSERT_TRUE(store->Put("a", "written"));
  const auto got = store->Get("a");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kCorrupt);
}

TEST_F(S3Requests, AServerThatIgnoresRangesIsFoundOut) {
  Serve([](const HttpTestRequest&, HttpTestPeer& peer) { peer.Answer(200, "0123456789"); });
  EXPECT_EQ(Open()->Get("a", 3, 20).error().code, ErrorCode::kUnavailable);
  Serve([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Answer(206, "012", {{"Content-Range", "bytes 0-2/10"}});
  });
  EXPECT_EQ(Open()->Get("a", 3, 3).error().code, ErrorCode::kUnavailable);
}

TEST_F(S3Requests, ACertainClockIsBelievedAtOnce) {
  const int64_t theirs = 1'900'000'000'000'000;
  std::string second;
  Serve([&](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.nth == 0)
      return peer.Answer(403, "<Error><Code>RequestTimeTooSkewed</Code></Error>",
                         {{"Date", HttpDate(theirs)}});
    second = request.Header("x-amz-date");
    peer.Answer(200, "ok");
  });
  EXPECT_EQ(*Open()->Get("a"), "ok");
  EXPECT_EQ(second.substr(0, 11), BasicIsoTime(theirs).substr(0, 11));
}

TEST_F(S3Requests, AnUploadThatEndsBadlyInA200IsNotDone) {
  std::atomic<int> completes{0};
  Serve([&](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.target.ends_with("?uploads="))
      return peer.Answer(
          200, "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>");
    if (request.method == "PUT") return peer.Answer(200, "", {{"ETag", "\"e\""}});
    if (request.method == "POST" && completes++ == 0)
      return peer.Answer(200, "\n<Error><Code>InternalError</Code></Error>");
    peer.Answer(200, "<CompleteMultipartUploadResult/>");
  });
  const auto store = Open();
  const int64_t part = 8 * 1024 * 1024;
  auto upload = store->StartUpload("large", part + 1, PutMode::kReplace);
  ASSERT_TRUE(upload);
  ASSERT_TRUE((*upload)->Part(0, std::string(static_cast<size_t>(part), 'x')));
  ASSERT_TRUE((*upload)->Part(1, "y"));
  EXPECT_TRUE((*upload)->Finish());
  EXPECT_EQ(completes, 2);
}

TEST_F(S3Requests, KeysNeverStandInErrors) {
  for (const int status : {403, 404, 500}) {
    Serve([&](const HttpTestRequest&, HttpTestPeer& peer) { peer.Answer(status, "<html>SECRET?</html>"); });
    S3StoreOptions options;
    options.tuning.retry.deadline_us = 0;
    const auto got = (*S3Store::Open(Access(), "lab", "", options))->Get("a");
    ASSERT_FALSE(got);
    for (const char* word : {"SECRET", "TOKEN"})
      EXPECT_EQ(StrCat(got.error().message, got.error().hint).find(word), std::string::npos);
  }
}

}  // namespace
}  // namespace overcap
