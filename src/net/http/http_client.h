// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 client of one server: keeps connections and uses them again, verifies certificates always, and
// waits nowhere without a deadline. It follows no redirects, knows no cookies, and asks for no compression.
//   HttpClient client(url.origin);
//   std::string body;
//   auto answer = client.Call({.method = "GET", .target = "/health"}, &body);
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "net/http/http_cancel.h"
#include "net/http/http_link.h"
#include "net/http/http_message.h"
#include "net/http/http_proxy.h"
#include "net/http/tls_context.h"
#include "net/http/url.h"

namespace overcap {

struct HttpClientOptions {
  TlsSettings tls;
  size_t most_kept = 64;                // idle connections
  std::optional<HttpProxy> proxy = {};  // ProxyOf() says which; nullopt: the server itself is reached
};

struct HttpBodyTo;

// Any number of threads. Every status is an answer; errors are: kUnavailable (not reachable, lost, late, not
// HTTP), kDenied (its certificate does not fit), kCorrupt (more than was asked for), kConflict (cancelled),
// kUsage (cannot be asked so), and what a taker gives.
class HttpClient {
 public:
  explicit HttpClient(HttpOrigin origin, HttpClientOptions options = {});
  ~HttpClient();

  // The whole body into `body`, at most `most` bytes of it: more are an error, but the text of an answer of
  // 300 and above is cut instead. A string used again is not cleared first: this is the quick way to many
  // large bodies.
  static constexpr size_t kText = 16 * 1024 * 1024;
  Result<HttpResponse> Call(const HttpRequest& request, std::string* body, size_t most = kText,
                            const HttpCancel* cancel = nullptr);
  // The body piece by piece as it comes, also one that never ends.
  Result<HttpResponse> Stream(const HttpRequest& request, const HttpPieceTaker& take,
                              const HttpCancel* cancel = nullptr);

  const HttpOrigin& origin() const { return origin_; }
  size_t kept() const;  // idle connections

 private:
  struct Kept {
    std::unique_ptr<HttpLink> link;
    int64_t since_us = 0;
  };

  Result<HttpResponse> Run(const HttpRequest& request, const HttpBodyTo& to, const HttpCancel* cancel);
  std::unique_ptr<HttpLink> TakeKept();
  void Keep(std::unique_ptr<HttpLink> link);
  Result<std::unique_ptr<HttpLink>> Connect(HttpWait* wait);
  Result<Fd> ConnectSocket(const HttpWait& wait);
  Result<std::shared_ptr<TlsContext>> Tls();

  const HttpOrigin origin_;
  const HttpClientOptions options_;
  const std::string peer_;    // for messages
  mutable std::mutex mutex_;  // guards all below
  std::vector<Kept> kept_;    // the newest last
  std::shared_ptr<TlsContext> tls_;
};

}  // namespace overcap
