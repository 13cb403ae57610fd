// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_problem.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

S3Problem Read(int status, std::string_view body, std::vector<HttpHeader> headers = {}) {
  HttpResponse head;
  head.status = status;
  head.headers = std::move(headers);
  return ReadS3Problem(head, body);
}

std::string Xml(const std::string& code, const std::string& more = "") {
  return StrCat("<?xml version=\"1.0\"?><Error><Code>", code, "</Code><Message>theirs</Message>", more,
                "</Error>");
}

Error ErrorOf(const S3Problem& problem, const std::string& key = "a/b") {
  return S3ErrorOf(problem, {"s3://lab/pre", "lab", "us-east-1", "https://s3.host", key, "write"});
}

TEST(S3Problem, TellsWhoIsToBlame) {
  struct Case {
    int status;
    std::string code;
    ErrorCode wanted;
    std::string message;
  };
  for (const Case& each : std::initializer_list<Case>{
           {403, "InvalidAccessKeyId", ErrorCode::kDenied,
            "the service of 's3://lab/pre' does not know this access key"},
           {403, "SignatureDoesNotMatch", ErrorCode::kDenied,
            "the secret key for 's3://lab/pre' is not the right one"},
           {400, "ExpiredToken", ErrorCode::kDenied, "the temporary keys for 's3://lab/pre' have expired"},
           {403, "AccessDenied", ErrorCode::kDenied, "not allowed to write 'a/b' in store 's3://lab/pre'"},
           {404, "NoSuchBucket", ErrorCode::kNotFound, "there is no bucket 'lab' at 'https://s3.host'"},
           {404, "NoSuchKey", ErrorCode::kNotFound, "there is no 'a/b' in store 's3://lab/pre'"},
           {412, "PreconditionFailed", ErrorCode::kConflict,
            "'a/b' in store 's3://lab/pre' is not as it was thought to be"},
           {503, "SlowDown", ErrorCode::kUnavailable,
            "the service of 's3://lab/pre' is not able to write now: SlowDown, 'theirs'"},
           {400, "BadDigest", ErrorCode::kUnavailable, ""},
           {400, "InvalidArgument", ErrorCode::kUsage,
            "the service does not write 'a/b' in store 's3://lab/pre': InvalidArgument, 'theirs'"},
       }) {
    const Error error = ErrorOf(Read(each.status, Xml(each.code)));
    EXPECT_EQ(error.code, each.wanted) << each.code;
    if (!each.message.empty()) {
      EXPECT_EQ(error.message, each.message);
    }
  }
}

TEST(S3Problem, NamesTheRightRegion) {
  for (const S3Problem& problem :
       {Read(400, Xml("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>")),
        Read(301, Xml("PermanentRedirect"), {{"x-amz-bucket-region", "eu-west-1"}}),
        Read(301, "", {{"x-amz-bucket-region", "eu-west-1"}})}) {
    const Error error = ErrorOf(problem);
    EXPECT_EQ(error.message, "bucket 'lab' is in region 'eu-west-1', not in 'us-east-1'");
    EXPECT_NE(error.hint.find("region: eu-west-1"), std::string::npos);
  }
}

TEST(S3Problem, KnowsAServerThatIsNotS3) {
  const Error error = ErrorOf(Read(404, "<html><body><p>Not found</body></html>"));
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(error.message, "'https://s3.host' does not answer as an S3 service does (status 404)");
  EXPECT_TRUE(IsPassing(Read(502, "<html>Bad gateway</html>")));
}

TEST(S3Problem, PassesOnlyWhatMayGoWellLater) {
  for (const char* code : {"SlowDown", "InternalError", "RequestTimeout", "ConditionalRequestConflict"})
    EXPECT_TRUE(IsPassing(Read(400, Xml(code)))) << code;
  for (const char* code : {"AccessDenied", "NoSuchKey", "InvalidArgument", "EntityTooLarge", "BadDigest"})
    EXPECT_FALSE(IsPassing(Read(400, Xml(code)))) << code;
}

TEST(S3Problem, KeepsWhatTheyWriteOnOneLine) {
  const Error error =
      ErrorOf(Read(400, "<Error><Code>Odd\nCode</Code><Message>a\nb\x1b[31m</Message></Error>"));
  EXPECT_EQ(error.message.find_first_of("\n\x1b"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace overcap
