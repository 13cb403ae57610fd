// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/sigv4.h"

#include <algorithm>

#include "base/text.h"
#include "net/handshake.h"
#include "net/http/digests.h"
#include "net/http/http_date.h"

namespace overcap {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::vector<HttpHeader> SortedHeaders(const SigV4Request& request) {
  std::vector<HttpHeader> headers = request.headers;
  std::stable_sort(headers.begin(), headers.end(),
                   [](const HttpHeader& a, const HttpHeader& b) { return a.name < b.name; });
  return headers;
}

// Blanks at both ends go, several in a row become one.
std::string TidyValue(std::string_view value) {
  std::string out;
  for (const char c : Trim(value)) {
    if (c == ' ' && !out.empty() && out.back() == ' ') continue;
    out.push_back(c);
  }
  return out;
}

// Headers of one name as one, with commas.
std::vector<HttpHeader> JoinedHeaders(const SigV4Request& request) {
  std::vector<HttpHeader> joined;
  for (const HttpHeader& header : SortedHeaders(request)) {
    const std::string value = TidyValue(header.value);
    if (!joined.empty() && joined.back().name == header.name) {
      joined.back().value += StrCat(",", value);
    } else {
      joined.push_back({header.name, value});
    }
  }
  return joined;
}

std::string SignedNames(const SigV4Request& request) {
  std::string names;
  for (const HttpHeader& header : JoinedHeaders(request))
    names += StrCat(names.empty() ? "" : ";", header.name);
  return names;
}

std::string Day(const SigV4Request& request) {
  return BasicIsoTime(request.time_us).substr(0, 8);
}

std::string CredentialScope(const SigV4Scope& scope, const SigV4Request& request) {
  return StrCat(Day(request), "/", scope.region, "/", scope.service, "/aws4_request");
}

std::string Signature(const SigV4Scope& scope, const SigV4Request& request) {
  const auto day = HmacSha256(StrCat("AWS4", scope.secret), Day(request));
  const auto region = HmacSha256(BytesAsText(day), scope.region);
  const auto service = HmacSha256(BytesAsText(region), scope.service);
  const auto key = HmacSha256(BytesAsText(service), "aws4_request");
  return HexOf(HmacSha256(BytesAsText(key), StringToSign(scope, request)));
}

}  // namespace

std::string SortedQuery(const QueryList& query) {
  QueryList encoded;
  for (const auto& [name, value] : query) encoded.emplace_back(PercentEncode(name), PercentEncode(value));
  std::sort(encoded.begin(), encoded.end());
  std::string out;
  for (const auto& [name, value] : encoded) out += StrCat(out.empty() ? "" : "&", name, "=", value);
  return out;
}

std::string CanonicalRequest(const SigV4Request& request) {
  std::string text = StrCat(request.method, "\n", request.path, "\n", SortedQuery(request.query), "\n");
  for (const HttpHeader& header : JoinedHeaders(request))
    text += StrCat(header.name, ":", header.value, "\n");
  return StrCat(text, "\n", SignedNames(request), "\n", request.payload_hash);
}

std::string StringToSign(const SigV4Scope& scope, const SigV4Request& request) {
  return StrCat(kAlgorithm, "\n", BasicIsoTime(request.time_us), "\n", CredentialScope(scope, request), "\n",
                HexOf(Sha256OfText(CanonicalRequest(request))));
}

std::string Authorization(const SigV4Scope& scope, const SigV4Request& request) {
  return StrCat(kAlgorithm, " Credential=", scope.access_key, "/", CredentialScope(scope, request),
                ", SignedHeaders=", SignedNames(request), ", Signature=", Signature(scope, request));
}

std::string PresignedQuery(const SigV4Scope& scope, const std::string& session_token, int64_t seconds,
                           SigV4Request request) {
  request.query.emplace_back("X-Amz-Algorithm", kAlgorithm);
  request.query.emplace_back("X-Amz-Credential",
                             StrCat(scope.access_key, "/", CredentialScope(scope, request)));
  request.query.emplace_back("X-Amz-Date", BasicIsoTime(request.time_us));
  request.query.emplace_back("X-Amz-Expires", std::to_string(seconds));
  if (!session_token.empty()) request.query.emplace_back("X-Amz-Security-Token", session_token);
  request.query.emplace_back("X-Amz-SignedHeaders", SignedNames(request));
  request.payload_hash = "UNSIGNED-PAYLOAD";
  return StrCat(SortedQuery(request.query), "&X-Amz-Signature=", Signature(scope, request));
}

}  // namespace overcap
