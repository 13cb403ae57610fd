// SPDX-License-Identifier: Apache-2.0
#include "stores/azblob/azure_service.h"

#include "base/text.h"
#include "net/http/digests.h"
#include "net/http/http_date.h"
#include "stores/azblob/azure_sign.h"
#include "stores/object_requests.h"

namespace overcap {
namespace {

constexpr const char* kVersion = "2021-08-06";
constexpr int64_t kClockDoubtUs = 300'000'000;  // Azure takes no request that is a quarter of an hour off

bool IsSas(std::string_view sas) {
  return sas.find("sig=") != sas.npos && sas.find_first_of(" \t\r\n#") == sas.npos;
}

}  // namespace

Result<std::unique_ptr<AzureService>> AzureService::Open(const AzureAccess& access, const Clock& clock,
                                                         const AzureTuning& tuning) {
  auto parsed =
      ParseUrl(access.endpoint.empty() ? StrCat("https://", access.account, ".blob.core.windows.net")
                                       : access.endpoint);
  if (!parsed)
    return Fail(NotAnEndpoint(std::move(parsed.error()), StrCat("account '", access.account, "'")));
  const Url& url = *parsed;
  std::unique_ptr<AzureService> service(new AzureService(access, tuning));
  service->base_path_ = url.path;
  while (service->base_path_.ends_with('/')) service->base_path_.pop_back();
  service->sas_ = access.sas.starts_with('?') ? access.sas.substr(1) : access.sas;
  if (!service->sas_.empty() && !IsSas(service->sas_))
    return Fail(ErrorCode::kUsage,
                StrCat("the shared access signature of account '", access.account, "' is none"),
                "sas_token is a text of the form ?sv=...&sig=...");
  if (!access.key.empty()) {
    const auto bytes = Base64Bytes(access.key);
    if (!bytes || bytes->empty())
      return Fail(ErrorCode::kUsage, StrCat("the key of account '", access.account, "' is not base64"),
                  "account_key is a text of 88 characters that ends with ==");
    service->key_ = *bytes;
  }
  OC_TRY(link, ServiceLink::Open(url.origin, access.ca_file, clock, tuning));
  service->link_ = std::move(link);
  return service;
}

std::string AzureService::PathOf(const std::string& blob) const {
  const std::string container = StrCat(base_path_, "/", PercentEncode(access_.container, "$"));
  return blob.empty() ? container : StrCat(container, "/", PercentEncode(blob, "/"));
}

HttpRequest AzureService::Signed(const AzureCall& call, int64_t now_us) const {
  AzureToSign to_sign;
  to_sign.method = call.method;
  to_sign.account = access_.account;
  to_sign.path = PathOf(call.blob);
  to_sign.query = call.query;
  to_sign.body_size = SizeOfPieces(call.body);
  to_sign.headers = call.headers;
  to_sign.headers.push_back({"x-ms-date", HttpDate(now_us)});
  to_sign.headers.push_back({"x-ms-version", kVersion});

  HttpRequest request;
  request.method = call.method;
  request.target = to_sign.path;
  std::string query = EncodeQuery(call.query);
  if (key_.empty() && !sas_.empty()) query += StrCat(query.empty() ? "" : "&", sas_);
  if (!query.empty()) request.target += StrCat("?", query);
  request.headers = to_sign.headers;
  request.body = call.body;
  request.has_body = call.has_body;
  if (!key_.empty()) request.headers.push_back({"authorization", AzureAuthorization(to_sign, key_)});
  return request;
}

bool AzureService::SasExpired() const {
  const int64_t expiry = key_.empty() ? AzureSasExpiryUs(sas_) : -1;
  return expiry >= 0 && expiry < link_->NowUs();
}

Result<AzureAnswer> AzureService::Call(const AzureCall& call, std::string* body, size_t most) const {
  std::optional<AzureProblem> problem;
  const auto judge = [&](const HttpResponse& head) -> std::optional<ServiceRefusal> {
    problem.reset();
    const bool web_page = IsWebPage(head, "x-ms-request-id");
    if (head.status < 300 && !web_page) return std::nullopt;
    problem = ReadAzureProblem(head, *body);
    problem->foreign = problem->foreign || web_page;
    ServiceRefusal refusal{problem->foreign, IsPassing(*problem)};
    // A wrong clock looks like a wrong key; the answer's date tells.
    if (problem->status == 403) refusal.clock_doubt_us = kClockDoubtUs;
    return refusal;
  };
  OC_TRY(head, link_->Send([&](int64_t now_us) { return Signed(call, now_us); }, judge, body, most));
  return AzureAnswer{std::move(head), std::move(problem)};
}

Result<std::string> AzureService::Presigned(const std::string& blob, int64_t seconds) const {
  if (key_.empty())
    return Fail(ErrorCode::kDenied,
                StrCat("no URL can be signed without the key of account '", access_.account, "'"),
                "a shared access signature cannot make others: use account_key");
  AzureSas sas;
  sas.account = access_.account, sas.container = access_.container, sas.blob = blob;
  sas.expires_us = link_->NowUs() + seconds * 1'000'000;
  sas.https_only = link_->origin().tls;
  return StrCat(link_->origin().Text(), PathOf(blob), "?", AzureSasQuery(sas, key_));
}

}  // namespace overcap
