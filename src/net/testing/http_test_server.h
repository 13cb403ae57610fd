// SPDX-License-Identifier: Apache-2.0
// An HTTP server inside a test, on loopback. It does what the test's function says, wrong things too.
//   HttpTestServer server([](const HttpTestRequest& request, HttpTestPeer& peer) { peer.Answer(200,
//   request.body); }); HttpClient client(server.origin());
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net/http/http_message.h"
#include "net/http/url.h"
#include "net/testing/test_certificate.h"
#include "sys/fd.h"

struct ssl_st;
struct ssl_ctx_st;

namespace overcap {

struct HttpTestRequest {
  std::string method, target, body;
  std::vector<HttpHeader> headers;  // names in lower case
  int connection = 0;               // which one it came over, from 0
  int nth = 0;                      // which one of that connection, from 0

  std::string Header(std::string_view name) const;
};

// The connection a request came over.
class HttpTestPeer {
 public:
  HttpTestPeer(int fd, ssl_st* ssl) : fd_(fd), ssl_(ssl) {}

  void Send(std::string_view bytes);  // as they are
  void Answer(int status, std::string_view body, const std::vector<HttpHeader>& headers = {});
  void Close() { open_ = false; }  // when the function returns
  void Reset();                    // at once, as a crash would
  bool WaitUntilGone();            // until the client closes; false when it does not within 20 s
  bool open() const { return open_; }
  // At most `size` bytes; "" at the end.
  std::string Read(size_t size);

 private:
  const int fd_;
  ssl_st* const ssl_;
  bool open_ = true;
};

class HttpTestServer {
 public:
  using Handler = std::function<void(const HttpTestRequest& request, HttpTestPeer& peer)>;
  // With `certificate` it speaks TLS; with `client_ca` (a file) it wants to see a certificate of the client.
  explicit HttpTestServer(Handler handler, const TestCertificate* certificate = nullptr,
                          const std::string& client_ca = "");
  ~HttpTestServer();  // breaks all connections

  HttpOrigin origin() const;  // 127.0.0.1
  int connections() const { return connections_; }
  int requests() const { return requests_; }

 private:
  void Accept();
  void Serve(int fd, int number);
  void ServeOver(HttpTestPeer& peer, int number);

  const Handler handler_;
  Fd listener_;
  int port_ = 0;
  std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> tls_;
  std::atomic<bool> stop_{false};
  std::atomic<int> connections_{0}, requests_{0};
  std::mutex mutex_;  // guards open_ and threads_
  std::vector<int> open_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace overcap
