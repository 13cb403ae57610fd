// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "stores/s3/s3_access.h"
#include "stores/s3/s3_problem.h"
#include "stores/s3/sigv4.h"
#include "stores/service_link.h"
#include "sys/clock.h"

namespace overcap {

// One request to a bucket.
struct S3Call {
  std::string method = "GET";
  std::string key;  // in the bucket, not encoded; "": the bucket itself
  QueryList query;
  std::vector<HttpHeader> headers;  // names in lower case; all are signed
  std::span<const std::string_view> body;
  bool has_body = false;
  std::string payload_hash;  // of `body`, hex; "": is computed
};

struct S3Answer {
  HttpResponse head;
  std::optional<S3Problem> problem;  // set: it was refused
};

struct S3Tuning : ServiceTuning {
  int page_size = 1000;  // of listings; services give no more
};

// Signs requests to one bucket, sends them, and sends again what may go well later. Any number of threads.
class S3Service {
 public:
  // kUsage for an endpoint that is none. Nothing is sent yet. `clock` must outlive it.
  static Result<std::unique_ptr<S3Service>> Open(const S3Access& access, const std::string& bucket,
                                                 const Clock& clock, const S3Tuning& tuning = {});

  // Answers and refusals; errors are of the way there only (kUnavailable, kDenied for certificates). The body
  // of an answer goes into `body`, at most `most` bytes of it.
  Result<S3Answer> Call(const S3Call& call, std::string* body, size_t most = HttpClient::kText) const;

  // A URL that anybody may GET the key with for so many seconds.
  std::string Presigned(const std::string& key, int64_t seconds) const;

  const std::string& bucket() const { return bucket_; }
  const S3Access& access() const { return access_; }
  std::string EndpointText() const { return link_->origin().Text(); }
  const S3Tuning& tuning() const { return tuning_; }
  const Clock& clock() const { return clock_; }
  // When the service gave this answer, by its own clock; by ours where it does not say.
  int64_t TimeOf(const S3Answer& answer) const;
  bool bucket_seen() const { return bucket_seen_; }  // a request to the bucket went well

 private:
  S3Service(const S3Access& access, std::string bucket, const Clock& clock, const S3Tuning& tuning)
      : access_(access), bucket_(std::move(bucket)), clock_(clock), tuning_(tuning) {}

  std::string PathOf(const std::string& key) const;
  SigV4Scope Scope() const;
  HttpRequest Signed(const S3Call& call, const std::string& payload_hash, int64_t now_us) const;

  const S3Access access_;
  const std::string bucket_;
  const Clock& clock_;
  const S3Tuning tuning_;
  std::string base_path_;  // before bucket and key, without a '/' at its end
  std::unique_ptr<ServiceLink> link_;
  mutable std::atomic<bool> bucket_seen_{false};
};

}  // namespace overcap
