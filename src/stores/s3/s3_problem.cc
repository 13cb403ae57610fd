// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_problem.h"

#include "base/text.h"
#include "net/http/retry_policy.h"
#include "stores/object_requests.h"
#include "stores/xml_tree.h"

namespace overcap {
namespace {

bool OneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  for (const std::string_view each : words)
    if (word == each) return true;
  return false;
}

// Services that give no body with an answer mean these.
std::string_view UsualCode(int status) {
  switch (status) {
    case 404:
      return "NoSuchKey";
    case 412:
      return "PreconditionFailed";
    case 416:
      return "InvalidRange";
    case 501:
      return "NotImplemented";
    default:
      return "";
  }
}

std::string Target(const S3Subject& subject) {
  if (subject.key.empty()) return Quoted(subject.location, 500);
  return StrCat(Quoted(subject.key, 200), " in store ", Quoted(subject.location, 500));
}

// Theirs is only told when nothing better is known; on one line, and not long.
std::string Theirs(const S3Problem& problem) {
  const std::string code = problem.code.empty() ? StrCat("status ", problem.status) : problem.code;
  return problem.message.empty() ? code : StrCat(code, ", ", Quoted(problem.message, 200));
}

// AWS tells of some of these with 400.
bool IsKeyProblem(std::string_view code) {
  return OneOf(code, {"InvalidAccessKeyId", "InvalidAccessKey", "XAdminUserNotFound", "SignatureDoesNotMatch",
                      "ExpiredToken", "TokenRefreshRequired", "InvalidToken", "InvalidSecurityToken"});
}

Error KeyError(const S3Problem& problem, const S3Subject& subject) {
  const std::string_view code = problem.code;
  if (OneOf(code, {"InvalidAccessKeyId", "InvalidAccessKey", "XAdminUserNotFound"}))
    return {ErrorCode::kDenied,
            StrCat("the service of '", subject.location, "' does not know this access key"),
            "look whether the key belongs to this service: 'overcap store check' says where it was found"};
  if (code == "SignatureDoesNotMatch")
    return {ErrorCode::kDenied, StrCat("the secret key for '", subject.location, "' is not the right one"),
            "look at the secret key: 'overcap store check' says where it was found"};
  if (OneOf(code, {"ExpiredToken", "TokenRefreshRequired"}))
    return {ErrorCode::kDenied, StrCat("the temporary keys for '", subject.location, "' have expired"),
            "get new ones, as you got these"};
  if (OneOf(code, {"InvalidToken", "InvalidSecurityToken"}))
    return {ErrorCode::kDenied, StrCat("the session token for '", subject.location, "' is not the right one"),
            ""};
  return {ErrorCode::kDenied, StrCat("not allowed to ", subject.verb, " ", Target(subject)),
          "these keys have no right to do it: ask whoever owns the bucket"};
}

bool IsRegionProblem(const S3Problem& problem) {
  if (OneOf(problem.code,
            {"PermanentRedirect", "TemporaryRedirect", "Redirect", "IllegalLocationConstraintException",
             "AuthorizationHeaderMalformed", "AuthorizationQueryParametersError"}))
    return true;
  return problem.status == 301 || problem.status == 307;
}

Error RegionError(const S3Problem& problem, const S3Subject& subject) {
  if (!problem.region.empty() && problem.region != subject.region)
    return {ErrorCode::kUsage,
            StrCat("bucket '", subject.bucket, "' is in region ", Quoted(problem.region), ", not in ",
                   Quoted(subject.region)),
            StrCat("write 'region: ", problem.region, "' for it in stores:, or set AWS_REGION")};
  return {ErrorCode::kUsage,
          StrCat("bucket '", subject.bucket, "' is not served by '", subject.endpoint, "' with region ",
                 Quoted(subject.region)),
          "look at endpoint and region of this store"};
}

}  // namespace

S3Problem ReadS3Problem(const HttpResponse& head, std::string_view body) {
  S3Problem problem;
  problem.status = head.status;
  problem.region = PlainWord(head.Find("x-amz-bucket-region"));
  const auto xml = ParseXml(body);
  if (xml && xml->name == "Error") {
    problem.code = PlainWord(xml->TextOf("Code"));
    problem.message = xml->TextOf("Message");
    if (const std::string_view region = PlainWord(xml->TextOf("Region")); !region.empty())
      problem.region = region;
  } else {
    problem.foreign = !body.empty() && head.Find("x-amz-request-id").empty();
  }
  if (problem.code.empty() && !problem.foreign) problem.code = UsualCode(head.status);
  return problem;
}

bool IsPassing(const S3Problem& problem) {
  return IsPassing(problem.status) ||
         OneOf(problem.code, {"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable",
                              "IncompleteBody", "OperationAborted", "ConditionalRequestConflict"});
}

Error S3ErrorOf(const S3Problem& problem, const S3Subject& subject) {
  const std::string_view code = problem.code;
  if (code == "NoSuchBucket" || code == "InvalidBucketName")
    return {ErrorCode::kNotFound,
            StrCat("there is no bucket '", subject.bucket, "' at '", subject.endpoint, "'"),
            StrCat("look at its name and region; to make it: aws s3 mb s3://", subject.bucket)};
  if (code == "NoSuchKey" || (code.empty() && problem.status == 404 && !problem.foreign))
    return {ErrorCode::kNotFound, StrCat("there is no ", Target(subject)), ""};
  if (IsRegionProblem(problem)) return RegionError(problem, subject);
  if (code == "RequestTimeTooSkewed")
    return {ErrorCode::kDenied,
            StrCat("the clock of this machine differs too much from that of '", subject.endpoint, "'"),
            "set the clock of this machine"};
  if (problem.foreign && !IsPassing(problem))
    return {ErrorCode::kUnavailable,
            StrCat("'", subject.endpoint, "' does not answer as an S3 service does (status ", problem.status,
                   ")"),
            "look at the endpoint: is it the address of the service itself, and not of its web page?"};
  if (problem.status == 401 || problem.status == 403 || IsKeyProblem(code)) return KeyError(problem, subject);
  if (problem.status == 412)
    return {ErrorCode::kConflict, StrCat(Target(subject), " is not as it was thought to be"), ""};
  if (IsPassing(problem))
    return {ErrorCode::kUnavailable,
            StrCat("the service of '", subject.location, "' is not able to ", subject.verb,
                   " now: ", Theirs(problem)),
            "try again later"};
  if (OneOf(code, {"BadDigest", "XAmzContentSHA256Mismatch", "InvalidDigest"}))
    return {ErrorCode::kUnavailable,
            StrCat("what arrived of ", Target(subject), " was not what was sent: ", Theirs(problem)),
            "try again"};
  if (OneOf(code, {"QuotaExceeded", "EntityTooLarge", "TooManyBuckets"}))
    return {ErrorCode::kUnavailable, StrCat("no room for ", Target(subject), ": ", Theirs(problem)), ""};
  const bool ours = problem.status == 400 || problem.status == 405 || problem.status == 501;
  return {ours ? ErrorCode::kUsage : ErrorCode::kUnavailable,
          StrCat("the service does not ", subject.verb, " ", Target(subject), ": ", Theirs(problem)), ""};
}

}  // namespace overcap
