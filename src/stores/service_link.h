// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/http/http_client.h"
#include "net/http/retry_policy.h"
#include "sys/clock.h"

namespace overcap {

struct ServiceTuning {
  RetryPolicy retry;
  int64_t unreached_deadline_us = 10'000'000;  // of retries until the service was reached once
  HttpDeadlines deadlines;
};

// What a refusal means for the next try.
struct ServiceRefusal {
  bool foreign = false;  // another than the service has answered: a proxy, a login page
  bool passing = false;  // it may go well later
  // Our clock may be why: when the service's differs by more from what we took it for, its time is taken.
  std::optional<int64_t> clock_doubt_us = {};
};

// Whether an answer that looks good comes from another than the service: the login page of a network, the
// front page of a web server. `id_header`: what the service puts into each of its answers.
bool IsWebPage(const HttpResponse& head, std::string_view id_header);

// The error of a URL that was to be the endpoint of `what`, naming that.
Error NotAnEndpoint(Error error, std::string_view what);

// The way to a service that wants each request signed with the time: sends requests, sends again what may go
// well later, and keeps how far the service's clock is from ours. Any number of threads.
class ServiceLink {
 public:
  // A request, signed for this time.
  using Sign = std::function<HttpRequest(int64_t now_us)>;
  // nullopt: the answer is a good one.
  using Judge = std::function<std::optional<ServiceRefusal>(const HttpResponse& head)>;

  // kUsage for a proxy of the environment that is none. `ca_file`: "" for the system's. `clock` must outlive
  // it.
  static Result<std::unique_ptr<ServiceLink>> Open(const HttpOrigin& origin, const std::string& ca_file,
                                                   const Clock& clock, const ServiceTuning& tuning);

  // The last answer, good or refused; errors are of the way there only (kUnavailable, kDenied for
  // certificates). The body goes into `body`, at most `most` bytes of it, before it is judged.
  Result<HttpResponse> Send(const Sign& sign, const Judge& judge, std::string* body, size_t most) const;

  const HttpOrigin& origin() const { return client_.origin(); }
  int64_t NowUs() const { return clock_.WallUs() + skew_us_; }  // by the service's clock, as far as known

 private:
  ServiceLink(const HttpOrigin& origin, HttpClientOptions options, const Clock& clock,
              const ServiceTuning& tuning)
      : clock_(clock), tuning_(tuning), client_(origin, std::move(options)) {}

  bool CorrectClock(const HttpResponse& head, int64_t doubt_us) const;

  const Clock& clock_;
  const ServiceTuning tuning_;
  mutable HttpClient client_;
  mutable std::atomic<int64_t> skew_us_{0};  // how far the service's clock is ahead of ours
  mutable std::atomic<bool> reached_{false};
};

}  // namespace overcap
