// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "net/http/http_client.h"
#include "net/http/retry_policy.h"
#include "stores/azblob/azure_access.h"
#include "stores/azblob/azure_problem.h"
#include "sys/clock.h"

namespace overcap {

// One request to a container.
struct AzureCall {
  std::string method = "GET";
  std::string blob;  // not encoded; "": the container itself
  QueryList query;
  std::vector<HttpHeader> headers;  // names in lower case
  std::span<const std::string_view> body;
  bool has_body = false;
};

struct AzureAnswer {
  HttpResponse head;
  std::optional<AzureProblem> problem;  // set: it was refused
};

struct AzureTuning {
  RetryPolicy retry;
  int64_t unreached_deadline_us = 10'000'000;  // of retries until the service was reached once
  HttpDeadlines deadlines;
  int page_size = 5000;  // of listings; the service gives no more
};

// Signs requests to one container, sends them, and sends again what may go well later. Any number of threads.
class AzureService {
 public:
  // kUsage for an endpoint or a key that is none. Nothing is sent yet. `clock` must outlive it.
  static Result<std::unique_ptr<AzureService>> Open(const AzureAccess& access, const Clock& clock,
                                                    const AzureTuning& tuning = {});

  // Answers and refusals; errors are of the way there only. The body goes into `body`, at most `most` bytes
  // of it.
  Result<AzureAnswer> Call(const AzureCall& call, std::string* body, size_t most = HttpClient::kText) const;

  // A URL that anybody may GET the blob with for so many seconds. kDenied without the account's key.
  Result<std::string> Presigned(const std::string& blob, int64_t seconds) const;

  const AzureAccess& access() const { return access_; }
  const AzureTuning& tuning() const { return tuning_; }
  std::string EndpointText() const { return client_->origin().Text(); }
  bool SasExpired() const;

 private:
  AzureService(const AzureAccess& access, const Clock& clock, const AzureTuning& tuning)
      : access_(access), clock_(clock), tuning_(tuning) {}

  std::string PathOf(const std::string& blob) const;
  HttpRequest Signed(const AzureCall& call) const;
  bool CorrectClock(const AzureAnswer& answer) const;
  int64_t NowUs() const { return clock_.WallUs() + skew_us_; }

  const AzureAccess access_;
  const Clock& clock_;
  const AzureTuning tuning_;
  std::string key_;        // as bytes
  std::string sas_;        // without '?'
  std::string base_path_;  // "" or "/account"
  std::unique_ptr<HttpClient> client_;
  mutable std::atomic<int64_t> skew_us_{0};
  mutable std::atomic<bool> reached_{false};
};

}  // namespace overcap
