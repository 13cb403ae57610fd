// SPDX-License-Identifier: Apache-2.0
// What services that are not AWS do otherwise, and what must work there all the same.
#include <gtest/gtest.h>

#include "base/text.h"
#include "stores/paged_listing.h"
#include "stores/s3/s3_parts_checksum.h"
#include "stores/s3/s3_store.h"
#include "stores/s3/testing/odd_service.h"

namespace overcap {
namespace {

std::unique_ptr<S3Store> Open(const std::string& endpoint, int page_size = 1000) {
  S3Access access;
  access.endpoint = endpoint;
  access.access_key = "KEY", access.secret = "SECRET";
  S3StoreOptions options;
  options.keys = KeyRule::kAny;
  options.tuning.page_size = page_size;
  options.tuning.retry = {1000, 2000, 1'000'000};
  return std::move(*S3Store::Open(access, "lab", "pre", options));
}

std::vector<std::string> Listed(const Store& store) {
  std::vector<std::string> keys;
  const auto all = store.ListAll("");
  EXPECT_TRUE(all) << all.error().message;
  if (all)
    for (const StoredObjectInfo& object : *all) keys.push_back(object.key);
  return keys;
}

// As Java sorts: characters that have two units of UTF-16 before those from U+E000 on.
bool ByUtf16(const std::string& a, const std::string& b) {
  const auto rank = [](char c) { return c == '\xf0' ? '\xed' : c; };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) {
    return static_cast<unsigned char>(rank(x)) < static_cast<unsigned char>(rank(y));
  });
}

TEST(OddS3Service, AnotherOrderHidesNothing) {
  const std::string wide = "\xef\xbc\x81", emoji = "\xf0\x9f\x98\x80";
  OddService service({.before = ByUtf16});
  for (int i = 0; i < 3; ++i) {
    service.Put(StrCat("pre/", wide, i), "x");
    service.Put(StrCat("pre/", emoji, i), "x");
    service.Put(StrCat("pre/a", i), "x");
  }
  const std::vector<std::string> sorted = {"a0",       "a1",        "a2",        wide + "0", wide + "1",
                                           wide + "2", emoji + "0", emoji + "1", emoji + "2"};
  for (const int page_size : {1, 2, 4, 1000})
    EXPECT_EQ(Listed(*Open(service.endpoint(), page_size)), sorted) << page_size;
  for (const int page_size : {4, 1000}) {  // one page alone is in order when it is sorted
    const auto store = Open(service.endpoint(), page_size);
    PagedListing listing(*store);
    while (*listing.Next() != nullptr) continue;
    EXPECT_EQ(listing.in_order(), page_size == 1000);
  }
}

TEST(OddS3Service, AListThatBeginsAgainEnds) {
  OddService service({.begins_again = true});
  for (int i = 0; i < 9; ++i) service.Put(StrCat("pre/k", i), "x");
  const auto store = Open(service.endpoint(), 3);
  EXPECT_EQ(Listed(*store).size(), 9u);
  PagedListing skips(*store);
  ASSERT_TRUE(skips.Next());
  skips.SkipTo("k5-not-there");
  const auto page = skips.Next();
  ASSERT_TRUE(page);
  EXPECT_EQ((*page)->objects.front().key, "k3");

  PagedListing goes_round(*store);
  ASSERT_TRUE(goes_round.Next());
  ASSERT_TRUE(store->Remove("k2"));  // where the next page is to go on
  const auto again = goes_round.Next();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kUnavailable);
}

TEST(OddS3Service, ARangeWithStatus200IsARange) {
  OddService service({.ranges_are_200 = true});
  service.Put("pre/a", "0123456789");
  const auto store = Open(service.endpoint());
  EXPECT_EQ(*store->Get("a", 3, 4), "3456");
  EXPECT_EQ(*store->Get("a", 8, 4), "89");
  EXPECT_EQ(*store->Get("a"), "0123456789");
}

TEST(OddS3Service, AnAnswerWithoutABodyIsNoWebPage) {
  OddService service({.type_of_204 = "text/html; charset=utf-8"});
  service.Put("pre/a", "x");
  const auto removed = Open(service.endpoint())->Remove("a");
  EXPECT_TRUE(removed) << removed.error().message;
}

TEST(OddS3Service, XmlThatIsCalledHtmlIsNoWebPage) {
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) {
    const std::string body = "<ListBucketResult></ListBucketResult>";
    peer.Send(StrCat("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nx-amzn-requestid: 1\r\n",
                     "Content-Length: ", body.size(), "\r\n\r\n", body));
  });
  const auto listed = Open(server.origin().Text())->List("", "");
  EXPECT_TRUE(listed) << listed.error().message;
}

TEST(OddS3Service, UploadsOfAPrefixAreFoundInTheListOfAll) {
  OddService service({.lists_uploads = false});
  const auto cleaned = Open(service.endpoint())->CleanUp(0);
  ASSERT_TRUE(cleaned) << cleaned.error().message;
  EXPECT_EQ(*cleaned, 0);
}

// What cannot be listed at all is an error that says so, after the rest was cleaned.
TEST(OddS3Service, UploadsThatCannotBeListedKeepNoNotes) {
  std::vector<std::string> removed;
  HttpTestServer server([&](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (request.method == "DELETE") {
      removed.push_back(request.target);
      return peer.Answer(204, "");
    }
    if (request.target.find("uploads=") != std::string::npos)
      return peer.Answer(501, "<html>Error 501</html>", {{"x-amz-request-id", "1"}});
    peer.Answer(200,
                "<ListBucketResult><Contents><Key>pre/.overcap-tmp-uploads/1</Key><Size>1</Size>"
                "</Contents></ListBucketResult>");
  });
  const auto cleaned = Open(server.origin().Text())->CleanUp(0);
  ASSERT_FALSE(cleaned);
  EXPECT_EQ(cleaned.error().message,
            "the service does not list the unfinished uploads of 's3://lab/pre': NotImplemented");
  EXPECT_EQ(removed, std::vector<std::string>{"/lab/pre/.overcap-tmp-uploads/1"});
}

// moto compares If-Match with the part's own ETag.
TEST(OddS3Service, PartsAreAskedForWithoutCondition) {
  bool replaced = false;
  HttpTestServer server([&](const HttpTestRequest& request, HttpTestPeer& peer) {
    if (!request.Header("if-match").empty()) return peer.Answer(412, "");
    const std::string etag = replaced ? "0" : "d41d8cd98f00b204e9800998ecf8427e-2";
    peer.Send(StrCat("HTTP/1.1 206 Partial Content\r\nETag: \"", etag,
                     "\"\r\nContent-Length: ", request.target.ends_with("=1") ? "8" : "2", "\r\n\r\n"));
  });
  const auto store = Open(server.origin().Text());
  const StoredObjectInfo object{.key = "a", .size = 10, .version = "d41d8cd98f00b204e9800998ecf8427e-2"};
  const auto told = store->ChecksumOf(object);
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->part_sizes, std::vector<int64_t>{8});
  EXPECT_TRUE(told->sure);
  replaced = true;
  EXPECT_EQ(store->ChecksumOf(object).error().code, ErrorCode::kConflict);
}

// The answer to HEAD has no body that could say why it is refused.
TEST(OddS3Service, AWrongClockIsCorrectedForHeadToo) {
  const int64_t theirs = 1'900'000'000'000'000;
  const std::string date = HttpDate(theirs);
  HttpTestServer server([&](const HttpTestRequest& request, HttpTestPeer& peer) {
    const bool right = request.Header("x-amz-date").starts_with(BasicIsoTime(theirs).substr(0, 8));
    if (request.method == "GET" && right) return peer.Answer(206, "x", {{"Content-Range", "bytes 0-0/5"}});
    if (request.method == "GET")
      return peer.Answer(403, "<Error><Code>RequestTimeTooSkewed</Code></Error>", {{"Date", date}});
    peer.Send(StrCat("HTTP/1.1 ", right ? "200 OK" : "403 Forbidden", "\r\nDate: ", date,
                     "\r\nContent-Length: 5\r\n\r\n"));
  });
  const auto stat = Open(server.origin().Text())->Stat("a");
  ASSERT_TRUE(stat) << stat.error().message;
  EXPECT_EQ(stat->size, 5);
}

TEST(OddS3Service, AUrlIsSignedByTheServicesClock) {
  const int64_t theirs = 1'900'000'000'000'000;
  HttpTestServer server([&](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Send(StrCat("HTTP/1.1 200 OK\r\nDate: ", HttpDate(theirs), "\r\nContent-Length: 5\r\n\r\n"));
  });
  const auto store = Open(server.origin().Text());
  ASSERT_TRUE(store->Stat("a"));
  const auto url = store->UrlOf("a", 60);
  ASSERT_TRUE(url);
  EXPECT_NE(url->find(StrCat("X-Amz-Date=", BasicIsoTime(theirs).substr(0, 11))), std::string::npos) << *url;
}

// What a client says of a server that sends `answer` to each request and hangs up.
Error WhatIsSaidOf(const std::string& answer) {
  HttpTestServer server([&](const HttpTestRequest&, HttpTestPeer& peer) {
    if (!answer.empty()) peer.Send(answer);
    peer.Close();
  });
  const auto listed = Open(server.origin().Text())->List("", "");
  return listed ? Error{} : listed.error();
}

TEST(OddS3Service, AServerThatSpeaksTlsIsRecognised) {
  const Error alert = WhatIsSaidOf(std::string("\x15\x03\x01\x00\x02\x02\x46", 7));
  EXPECT_NE(alert.message.find("it speaks TLS: write https://"), std::string::npos) << alert.message;
  EXPECT_EQ(WhatIsSaidOf("").hint, "if the service speaks TLS, write https:// in its endpoint");
}

TEST(OddS3Service, AnUnknownAccessKeyIsDeniedWhateverItsCode) {
  HttpTestServer server([](const HttpTestRequest&, HttpTestPeer& peer) {
    peer.Answer(404, "<Error><Code>XAdminUserNotFound</Code></Error>");
  });
  const auto listed = Open(server.origin().Text())->List("", "");
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::kDenied);
  EXPECT_NE(listed.error().message.find("does not know this access key"), std::string::npos);
}

}  // namespace
}  // namespace overcap
