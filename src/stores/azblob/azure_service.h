// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "stores/azblob/azure_access.h"
#include "stores/azblob/azure_problem.h"
#include "stores/service_link.h"
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

struct AzureTuning : ServiceTuning {
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
  std::string EndpointText() const { return link_->origin().Text(); }
  bool SasExpired() const;

 private:
  AzureService(const AzureAccess& access, const AzureTuning& tuning) : access_(access), tuning_(tuning) {}

  std::string PathOf(const std::string& blob) const;
  HttpRequest Signed(const AzureCall& call, int64_t now_us) const;

  const AzureAccess access_;
  const AzureTuning tuning_;
  std::string key_;        // as bytes
  std::string sas_;        // without '?'
  std::string base_path_;  // "" or "/account"
  std::unique_ptr<ServiceLink> link_;
};

}  // namespace overcap
