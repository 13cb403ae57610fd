// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_service.h"

#include "base/text.h"
#include "net/http/digests.h"
#include "net/http/http_date.h"

namespace overcap {
namespace {

constexpr int64_t kClockDoubtUs = 60'000'000;  // the service has said that it is the clock

std::string OwnEndpoint(const std::string& region) {
  return StrCat("https://s3.", region, ".amazonaws.com", region.starts_with("cn-") ? ".cn" : "");
}

// A name with dots is no single label, which is all that a certificate's '*' stands for; an address has no
// labels.
bool MustBeInPath(const std::string& bucket, const HttpOrigin& origin) {
  const bool address = origin.host.find(':') != origin.host.npos ||
                       origin.host.find_first_not_of("0123456789.") == origin.host.npos;
  return address || (origin.tls && bucket.find('.') != bucket.npos);
}

}  // namespace

Result<std::unique_ptr<S3Service>> S3Service::Open(const S3Access& access, const std::string& bucket,
                                                   const Clock& clock, const S3Tuning& tuning) {
  auto parsed = ParseUrl(access.endpoint.empty() ? OwnEndpoint(access.region) : access.endpoint);
  if (!parsed) return Fail(NotAnEndpoint(std::move(parsed.error()), StrCat("bucket '", bucket, "'")));
  Url& url = *parsed;
  if (!url.query.empty())
    return Fail(ErrorCode::kUsage, StrCat("the endpoint of bucket '", bucket, "' has a '?' in it"));
  std::unique_ptr<S3Service> service(new S3Service(access, bucket, clock, tuning));
  service->base_path_ = url.path == "/" ? "" : url.path;
  if (service->base_path_.ends_with('/')) service->base_path_.pop_back();
  if (access.path_style || MustBeInPath(bucket, url.origin)) {
    service->base_path_ += StrCat("/", PercentEncode(bucket));
  } else {
    url.origin.host = StrCat(bucket, ".", url.origin.host);
  }
  OC_TRY(link, ServiceLink::Open(url.origin, access.ca_file, clock, tuning));
  service->link_ = std::move(link);
  return service;
}

std::string S3Service::PathOf(const std::string& key) const {
  if (key.empty()) return base_path_.empty() ? "/" : base_path_;
  return StrCat(base_path_, "/", PercentEncode(key, "/"));
}

SigV4Scope S3Service::Scope() const {
  return {access_.access_key, access_.secret, access_.region, "s3"};
}

HttpRequest S3Service::Signed(const S3Call& call, const std::string& payload_hash, int64_t now_us) const {
  SigV4Request to_sign;
  to_sign.method = call.method;
  to_sign.path = PathOf(call.key);
  to_sign.query = call.query;
  to_sign.payload_hash = payload_hash;
  to_sign.time_us = now_us;
  to_sign.headers = call.headers;
  to_sign.headers.push_back({"x-amz-content-sha256", payload_hash});
  to_sign.headers.push_back({"x-amz-date", BasicIsoTime(to_sign.time_us)});
  if (!access_.session_token.empty())
    to_sign.headers.push_back({"x-amz-security-token", access_.session_token});

  HttpRequest request;
  request.method = call.method;
  request.target = to_sign.path;
  if (!call.query.empty()) request.target += StrCat("?", SortedQuery(call.query));
  request.headers = to_sign.headers;
  request.body = call.body;
  request.has_body = call.has_body;
  if (access_.access_key.empty()) return request;  // what everybody may read needs no signature
  to_sign.headers.push_back({"host", link_->origin().HostHeader()});
  request.headers.push_back({"authorization", Authorization(Scope(), to_sign)});
  return request;
}

// The header has whole seconds, and some round what they tell of others up.
int64_t S3Service::TimeOf(const S3Answer& answer) const {
  return ParseHttpDate(answer.head.Find("date")).value_or(link_->NowUs()) + 1'000'000;
}

Result<S3Answer> S3Service::Call(const S3Call& call, std::string* body, size_t most) const {
  const std::string hash = call.payload_hash.empty() ? HexOf(Sha256OfPieces(call.body)) : call.payload_hash;
  std::optional<S3Problem> problem;
  const auto judge = [&](const HttpResponse& head) -> std::optional<ServiceRefusal> {
    problem.reset();
    // An answer may have begun well before it failed: S3 says so in the body.
    const bool says_error =
        head.status == 200 && call.method == "POST" && body->find("<Error>") != body->npos;
    // moto calls its XML text/html, and has another name for the id of a request.
    const bool web_page = IsWebPage(head, "x-amz-request-id") && head.Find("x-amzn-requestid").empty();
    if (head.status < 300 && !says_error && !web_page) return std::nullopt;
    problem = ReadS3Problem(head, *body);
    problem->foreign = problem->foreign || web_page;
    if (says_error) problem->status = 500;
    ServiceRefusal refusal{problem->foreign, IsPassing(*problem)};
    if (problem->code == "RequestTimeTooSkewed" || problem->code == "RequestExpired")
      refusal.clock_doubt_us = kClockDoubtUs;
    return refusal;
  };
  OC_TRY(head, link_->Send([&](int64_t now_us) { return Signed(call, hash, now_us); }, judge, body, most));
  if (!problem) bucket_seen_ = true;
  return S3Answer{std::move(head), std::move(problem)};
}

std::string S3Service::Presigned(const std::string& key, int64_t seconds) const {
  SigV4Request request;
  request.method = "GET";
  request.path = PathOf(key);
  request.time_us = link_->NowUs();
  request.headers = {{"host", link_->origin().HostHeader()}};
  return StrCat(link_->origin().Text(), request.path, "?",
                PresignedQuery(Scope(), access_.session_token, seconds, request));
}

}  // namespace overcap
