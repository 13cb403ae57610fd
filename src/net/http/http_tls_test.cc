// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <thread>

#include "base/text.h"
#include "net/http/http_client.h"
#include "net/tcp.h"
#include "net/testing/http_test_server.h"

namespace overcap {
namespace {

class HttpTls : public testing::Test {
 protected:
  HttpTls() {
    char pattern[] = "/tmp/overcap-tls-XXXXXX";
    folder_ = mkdtemp(pattern);
    good_ = MakeTestCertificate(folder_, "good", {"IP:127.0.0.1", "DNS:localhost"});
  }
  ~HttpTls() override { std::filesystem::remove_all(folder_); }

  static void Echo(const HttpTestRequest& request, HttpTestPeer& peer) {
    peer.Answer(200, StrCat(request.method, " ", request.body));
  }
  HttpClientOptions Trusting(const std::string& ca_file) {
    HttpClientOptions options;
    options.tls.ca_file = ca_file;
    return options;
  }
  Error ErrorOf(HttpClient& client) {
    std::string body;
    const auto answer = client.Call({}, &body);
    return answer ? Error{ErrorCode::kInternal, "it was answered", ""} : answer.error();
  }

  std::string folder_;
  TestCertificate good_;
};

TEST_F(HttpTls, CarriesRequestsOverKeptConnections) {
  HttpTestServer server(Echo, &good_);
  HttpClient client(server.origin(), Trusting(good_.cert_file));
  const std::string large(3'000'000, 'x');
  const std::vector<std::string_view> pieces = {"head,", "", large, ",tail"};
  for (int i = 0; i < 3; ++i) {
    HttpRequest request;
    request.method = "PUT";
    request.body = pieces;
    std::string body;
    const auto answer = client.Call(request, &body);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_TRUE(body == StrCat("PUT head,", large, ",tail"));
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(HttpTls, TakesTheNameOfTheHostToo) {
  HttpTestServer server(Echo, &good_);
  HttpClient client({true, "localhost", server.origin().port}, Trusting(good_.cert_file));
  std::string body;
  const auto answer = client.Call({}, &body);
  ASSERT_TRUE(answer) << answer.error().message;
}

TEST_F(HttpTls, RefusesACertificateThatNobodyVouchesFor) {
  HttpTestServer server(Echo, &good_);
  HttpClient client(server.origin());
  const Error error = ErrorOf(client);
  EXPECT_EQ(error.code, ErrorCode::kDenied);
  EXPECT_EQ(error.message, StrCat("the certificate of '127.0.0.1:", server.origin().port,
                                  "' does not fit: self-signed certificate"));
  EXPECT_NE(error.hint.find("ca_file"), std::string::npos);
}

TEST_F(HttpTls, RefusesACertificateOfAnotherHost) {
  const TestCertificate other =
      MakeTestCertificate(folder_, "other", {"DNS:elsewhere.example", "IP:127.0.0.2"});
  HttpTestServer server(Echo, &other);
  for (const char* host : {"127.0.0.1", "localhost"}) {
    HttpClient client({true, host, server.origin().port}, Trusting(other.cert_file));
    const Error error = ErrorOf(client);
    EXPECT_EQ(error.code, ErrorCode::kDenied);
    EXPECT_EQ(error.message, StrCat("the certificate of '", host, ":", server.origin().port,
                                    "' is for another host: 'elsewhere.example', '127.0.0.2'"));
    EXPECT_EQ(error.hint.find("ca_file"), std::string::npos) << error.hint;
  }
  EXPECT_EQ(server.requests(), 0);
}

TEST_F(HttpTls, ShowsItsOwnCertificateWhenAsked) {
  const TestCertificate me = MakeTestCertificate(folder_, "me", {"DNS:me"});
  HttpTestServer server(Echo, &good_, me.cert_file);
  HttpClientOptions options = Trusting(good_.cert_file);
  HttpClient nobody(server.origin(), options);
  EXPECT_NE(ErrorOf(nobody).message, "it was answered");
  options.tls.cert_file = me.cert_file, options.tls.key_file = me.key_file;
  HttpClient client(server.origin(), options);
  std::string body;
  const auto answer = client.Call({}, &body);
  EXPECT_TRUE(answer) << answer.error().message;
}

TEST_F(HttpTls, NamesFilesThatDoNotFit) {
  HttpTestServer server(Echo, &good_);
  HttpClient missing(server.origin(), Trusting(folder_ + "/none.pem"));
  EXPECT_EQ(ErrorOf(missing).message, StrCat("no certificates can be read from '", folder_, "/none.pem'"));
  HttpClientOptions options = Trusting(good_.cert_file);
  options.tls.cert_file = good_.cert_file;
  options.tls.key_file = MakeTestCertificate(folder_, "x", {"DNS:x"}).key_file;
  HttpClient wrong_key(server.origin(), options);
  EXPECT_EQ(ErrorOf(wrong_key).code, ErrorCode::kUsage);
}

TEST_F(HttpTls, SaysWhenTheServerDoesNotSpeakTls) {
  auto listener = ListenTcp();
  ASSERT_TRUE(listener);
  std::atomic<bool> done{false};
  std::thread plain([&] {
    Result<std::optional<Fd>> peer = std::optional<Fd>();
    while (peer && !*peer && !done) peer = AcceptTcp(listener->fd);
    if (!peer || !*peer) return;
    const std::string_view answer = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    (void)!write((*peer)->Get(), answer.data(), answer.size());
    while (!done) std::this_thread::yield();
  });
  HttpClient client({true, "127.0.0.1", listener->port});
  const Error error = ErrorOf(client);
  done = true;
  plain.join();
  EXPECT_EQ(error.message, StrCat("'127.0.0.1:", listener->port, "' does not speak TLS"));
}

TEST_F(HttpTls, ACutConnectionIsNoEndOfABody) {
  HttpTestServer server(
      [](const HttpTestRequest&, HttpTestPeer& peer) {
        peer.Send("HTTP/1.1 200 OK\r\n\r\nlooks whole");
        peer.Close();  // without TLS's good-bye
      },
      &good_);
  HttpClient client(server.origin(), Trusting(good_.cert_file));
  EXPECT_EQ(ErrorOf(client).code, ErrorCode::kUnavailable);
}

TEST_F(HttpTls, IsCancelledFromAnotherThread) {
  std::atomic<bool> streaming{false};
  HttpTestServer server(
      [](const HttpTestRequest&, HttpTestPeer& peer) {
        peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
        peer.WaitUntilGone();
        peer.Close();
      },
      &good_);
  HttpClient client(server.origin(), Trusting(good_.cert_file));
  HttpCancel cancel;
  std::thread canceller([&] {
    while (!streaming) std::this_thread::yield();
    cancel.Cancel();
  });
  const auto answer = client.Stream(
      {},
      [&](const HttpResponse&, std::string_view) {
        streaming = true;
        return Result<void>();
      },
      &cancel);
  streaming = true;
  canceller.join();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kConflict) << answer.error().message;
}

}  // namespace
}  // namespace overcap
