// SPDX-License-Identifier: Apache-2.0
// The examples that AWS publishes: its test suite for version 4, and those in the manual of S3.
#include "stores/s3/sigv4.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "net/http/digests.h"
#include "net/http/http_date.h"

namespace overcap {
namespace {

constexpr const char* kEmptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string SignatureIn(const std::string& text) {
  return text.substr(text.rfind('=') + 1);
}

// ---- the suite: one key, one moment

std::string SuiteSignature(const std::string& method, const std::string& path, const QueryList& query,
                           const std::vector<HttpHeader>& more = {}, const std::string& body = "") {
  SigV4Request request;
  request.method = method, request.path = path, request.query = query;
  request.headers = {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}};
  request.headers.insert(request.headers.end(), more.begin(), more.end());
  request.payload_hash = HexOf(Sha256OfText(body));
  request.time_us = *ParseIsoTime("2015-08-30T12:36:00Z");
  const SigV4Scope scope{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1", "service"};
  return SignatureIn(Authorization(scope, request));
}

TEST(SigV4, SignsTheSuitesRequests) {
  EXPECT_EQ(SuiteSignature("GET", "/", {}),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  EXPECT_EQ(SuiteSignature("POST", "/", {}),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
  EXPECT_EQ(SuiteSignature("GET", "/%E1%88%B4", {}),
            "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85");
  EXPECT_EQ(SuiteSignature("GET", "/", {{"Param2", "value2"}, {"Param1", "value1"}}),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

TEST(SigV4, TidiesAndJoinsHeadersAsTheSuiteDoes) {
  // sends.
  EXPECT_EQ(SuiteSignature("GET", "/", {}, {{"my-header1", " value1"}, {"my-header2", " \"a   b   c\""}}),
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
  EXPECT_EQ(SuiteSignature("GET", "/", {},
                           {{"my-header1", "value2"}, {"my-header1", "value2"}, {"my-header1", "value1"}}),
            "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea");
}

// ---- the manual of S3 (Authenticating Requests: Using the Authorization Header)

SigV4Request ManualRequest(const std::string& method, const std::string& path, const QueryList& query,
                           const std::string& hash, const std::vector<HttpHeader>& more = {}) {
  SigV4Request request;
  request.method = method, request.path = path, request.query = query, request.payload_hash = hash;
  request.headers = {{"host", "examplebucket.s3.amazonaws.com"},
                     {"x-amz-content-sha256", hash},
                     {"x-amz-date", "20130524T000000Z"}};
  request.headers.insert(request.headers.end(), more.begin(), more.end());
  request.time_us = *ParseIsoTime("2013-05-24T00:00:00Z");
  return request;
}

const SigV4Scope kManual{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1",
                         "s3"};

TEST(SigV4, SignsAReadOfARange) {
  const SigV4Request request = ManualRequest("GET", "/test.txt", {}, kEmptyHash, {{"range", "bytes=0-9"}});
  EXPECT_EQ(StringToSign(kManual, request),
            "AWS4-HMAC-SHA256\n20130524T000000Z\n20130524/us-east-1/s3/aws4_request\n"
            "7344ae5b7ee6c3e7e6b0fe0640412a37625d1fbfff95c48bbb2dc43964946972");
  EXPECT_EQ(Authorization(kManual, request),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4, SignsAPut) {
  const std::string hash = HexOf(Sha256OfText("Welcome to Amazon S3."));
  const SigV4Request request = ManualRequest(
      "PUT", "/test%24file.text", {}, hash,
      {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}});
  EXPECT_EQ(SignatureIn(Authorization(kManual, request)),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(SigV4, SignsQueriesWithAndWithoutValues) {
  EXPECT_EQ(SignatureIn(Authorization(kManual, ManualRequest("GET", "/", {{"lifecycle", ""}}, kEmptyHash))),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(SignatureIn(Authorization(
                kManual, ManualRequest("GET", "/", {{"prefix", "J"}, {"max-keys", "2"}}, kEmptyHash))),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4, SignsUrls) {
  SigV4Request request;
  request.method = "GET", request.path = "/test.txt";
  request.headers = {{"host", "examplebucket.s3.amazonaws.com"}};
  request.time_us = *ParseIsoTime("2013-05-24T00:00:00Z");
  EXPECT_EQ(
      PresignedQuery(kManual, "", 86'400, request),
      "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F"
      "aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature="
      "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

TEST(SigV4, SortsTheQueryItSends) {
  EXPECT_EQ(SortedQuery({{"prefix", "a b"}, {"list-type", "2"}, {"max-keys", "5"}}),
            "list-type=2&max-keys=5&prefix=a%20b");
}

}  // namespace
}  // namespace overcap
