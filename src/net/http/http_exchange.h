// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/http/http_head.h"
#include "net/http/http_link.h"
#include "net/http/url.h"

namespace overcap {

// Where a body goes: into a string that the caller owns, or piece by piece to a function.
struct HttpBodyTo {
  std::string* whole = nullptr;
  size_t most = 0;  // bytes of `whole`; more are an error
  const HttpPieceTaker* take = nullptr;
};

// kUsage when something in it would break the lines of the protocol.
Result<void> CheckHttpRequest(const HttpRequest& request);
std::string HttpRequestHead(const HttpOrigin& origin, const HttpRequest& request);

// One request and its answer over a connection. `reusable` says whether the connection can serve another one.
Result<HttpResponse> Exchange(HttpLink& link, const HttpOrigin& origin, const HttpRequest& request,
                              const HttpBodyTo& to, const HttpWait& wait, bool* reusable);

}  // namespace overcap
