// SPDX-License-Identifier: Apache-2.0
#include "stores/service_link.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "net/http/http_date.h"
#include "net/http/retry_loop.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr int64_t kClockDoubtUs = 60'000'000;  // what a good answer's date may differ by

}  // namespace

bool IsWebPage(const HttpResponse& head, std::string_view id_header) {
  return head.status != 204 && head.Find("content-type").starts_with("text/html") &&
         head.Find("etag").empty() && head.Find(id_header).empty();
}

Error NotAnEndpoint(Error error, std::string_view what) {
  error.message = StrCat("the endpoint of ", what, ": ", error.message);
  return error;
}

Result<std::unique_ptr<ServiceLink>> ServiceLink::Open(const HttpOrigin& origin, const std::string& ca_file,
                                                       const Clock& clock, const ServiceTuning& tuning) {
  HttpClientOptions options;
  options.tls.ca_file = ca_file;
  OC_TRY(proxy, ProxyOf(origin, Variables::OfThisProcess()));
  options.proxy = std::move(proxy);
  return std::unique_ptr<ServiceLink>(new ServiceLink(origin, std::move(options), clock, tuning));
}

// True when that changed something.
bool ServiceLink::CorrectClock(const HttpResponse& head, int64_t doubt_us) const {
  const auto theirs = ParseHttpDate(head.Find("date"));
  if (!theirs) return false;
  const int64_t skew = *theirs - clock_.WallUs();
  if (std::llabs(skew - skew_us_) <= doubt_us) return false;
  skew_us_ = skew;
  return true;
}

Result<HttpResponse> ServiceLink::Send(const Sign& sign, const Judge& judge, std::string* body,
                                       size_t most) const {
  RetryPolicy policy = tuning_.retry;
  if (!reached_) policy.deadline_us = std::min(policy.deadline_us, tuning_.unreached_deadline_us);
  KernelRandom random;
  RetryLoop retry(policy, clock_, random);
  while (true) {
    HttpRequest request = sign(NowUs());
    request.deadlines = tuning_.deadlines;
    auto sent = client_.Call(request, body, most);
    if (!sent) {
      if (IsPassing(sent.error()) && retry.Again(std::nullopt)) continue;
      if (!reached_ && !origin().tls && sent.error().code == ErrorCode::kUnavailable &&
          sent.error().hint.empty())
        sent.error().hint = "if the service speaks TLS, write https:// in its endpoint";
      return sent;
    }
    const std::optional<ServiceRefusal> refusal = judge(*sent);
    if (!refusal || !refusal->foreign) reached_ = true;
    if (!refusal) {
      CorrectClock(*sent, kClockDoubtUs);
      return sent;
    }
    if (refusal->clock_doubt_us && CorrectClock(*sent, *refusal->clock_doubt_us)) continue;
    if (refusal->passing && retry.Again(RetryAfterUs(sent->Find("retry-after")))) continue;
    return sent;
  }
}

}  // namespace overcap
