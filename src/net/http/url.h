// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace overcap {

// Where an HTTP server listens.
struct HttpOrigin {
  bool tls = false;
  std::string host;  // a name or a literal address, IPv6 without its brackets
  int port = 80;

  std::string HostHeader() const;  // "host", "host:8080", "[::1]:8080"
  std::string Text() const;        // "https://host:8443"
  bool operator==(const HttpOrigin&) const = default;
};

struct Url {
  HttpOrigin origin;
  std::string path;   // as written, percent signs and all; begins with '/', "/" when there was none
  std::string query;  // without its '?'
};

// http:// or https:// only. kUsage, without repeating the text: user:password@ is refused, and others may
// hold secrets too.
Result<Url> ParseUrl(std::string_view text);

// All bytes but A-Z a-z 0-9 - . _ ~ and those in `keep` as %XX.
std::string PercentEncode(std::string_view text, std::string_view keep = "");

using QueryList = std::vector<std::pair<std::string, std::string>>;  // name and value, not encoded
// "a=1&b=" with both sides encoded, in the order given.
std::string EncodeQuery(const QueryList& query);

}  // namespace overcap
