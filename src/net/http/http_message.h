// SPDX-License-Identifier: Apache-2.0
// What is asked of an HTTP server and what it says, as values.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

struct HttpHeader {
  std::string name, value;
  bool operator==(const HttpHeader&) const = default;
};

// No step waits longer. `idle_us` is for each wait for the server to take or give anything at all.
struct HttpDeadlines {
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 4;
  int64_t connect_us = 10'000'000;  // look-up of the name, connecting and the TLS handshake, all addresses
  int64_t idle_us = 60'000'000;
  int64_t total_us = 3'600'000'000;
};

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";  // path and query, encoded
  // Host, Content-Length and Connection are the client's. Values of several lines are refused.
  std::vector<HttpHeader> headers;
  std::span<const std::string_view>
      body;               // sent one after the other, not copied; must live as long as the call
  bool has_body = false;  // an empty body too is announced (Content-Length: 0)
  // Whether it may be sent again when a connection kept from an earlier request turns out to be closed: the
  // server may then see it twice.
  bool repeatable = true;
  HttpDeadlines deadlines;
};

struct HttpResponse {
  int status = 0;
  int minor_version = 1;            // of HTTP/1.x
  std::vector<HttpHeader> headers;  // names in lower case

  // The first of this name (lower case), or "".
  std::string_view Find(std::string_view name) const;
};

// Takes the body piece by piece; an error ends the request with it.
using HttpPieceTaker = std::function<Result<void>(const HttpResponse& head, std::string_view piece)>;

}  // namespace overcap
