// SPDX-License-Identifier: Apache-2.0
// AWS Signature Version 4, as S3 wants it (paths are encoded once and not tidied). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_message.h"
#include "net/http/url.h"

namespace overcap {

// What is signed, and with what.
struct SigV4Scope {
  std::string access_key, secret, region;
  std::string service = "s3";
};

struct SigV4Request {
  std::string method;
  std::string path;                 // encoded, as it is sent
  QueryList query;                  // not encoded, in any order
  std::vector<HttpHeader> headers;  // to be signed: names in lower case, host among them
  std::string payload_hash;         // hex SHA-256, or "UNSIGNED-PAYLOAD"
  int64_t time_us = 0;
};

// The query as it must be sent: encoded, sorted.
std::string SortedQuery(const QueryList& query);

std::string CanonicalRequest(const SigV4Request& request);
std::string StringToSign(const SigV4Scope& scope, const SigV4Request& request);

// The value of the header Authorization. `headers` must hold x-amz-date, which is BasicIsoTime(time_us).
std::string Authorization(const SigV4Scope& scope, const SigV4Request& request);

// Of a URL that anybody may use for so many seconds: `request.query` and all that the signature adds to it,
// as it must be sent. `request.headers` is usually the host alone.
std::string PresignedQuery(const SigV4Scope& scope, const std::string& session_token, int64_t seconds,
                           SigV4Request request);

}  // namespace overcap
