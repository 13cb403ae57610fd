// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_proxy.h"

#include <atomic>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

#include "net/http/http_client.h"
#include "net/tcp.h"
#include "net/testing/http_test_server.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

const HttpOrigin kPlain{false, "data.lab", 80}, kSecure{true, "s3.lab.example", 443};

std::string ProxyText(const HttpOrigin& origin, std::vector<std::string> variables) {
  const auto proxy = ProxyOf(origin, Variables(std::move(variables)));
  if (!proxy) return "error";
  return *proxy ? (*proxy)->Text() : "";
}

HttpRequest Asked(const std::string& target) {
  HttpRequest request;
  request.target = target;
  return request;
}

TEST(HttpProxy, EachSchemeHasItsVariable) {
  const std::vector<std::string> both = {"http_proxy=http://p:1", "HTTPS_PROXY=q:2"};
  EXPECT_EQ(ProxyText(kPlain, both), "p:1");
  EXPECT_EQ(ProxyText(kSecure, both), "q:2");
  EXPECT_EQ(ProxyText(kSecure, {"all_proxy=http://p:1/"}), "p:1");
  EXPECT_EQ(ProxyText(kPlain, {"http_proxy=http://small:1", "HTTP_PROXY=http://LARGE:1"}), "small:1");
  EXPECT_EQ(ProxyText(kPlain, {}), "");
  EXPECT_EQ(ProxyText(kPlain, {"http_proxy="}), "");
}

TEST(HttpProxy, NoProxyNamesHostsDomainsAndPorts) {
  for (const char* list : {"data.lab", ".lab", "lab", "x, data.lab:80", "*", "DATA.LAB", "*.lab"}) {
    EXPECT_EQ(ProxyText(kPlain, {"http_proxy=p:1", std::string("no_proxy=") + list}), "") << list;
  }
  for (const char* list : {"ata.lab", "data.lab:81", "other.lab", "data", ""}) {
    EXPECT_EQ(ProxyText(kPlain, {"http_proxy=p:1", std::string("NO_PROXY=") + list}), "p:1") << list;
  }
  EXPECT_EQ(ProxyText({false, "fd00::1", 80}, {"http_proxy=p:1", "no_proxy=fd00::1"}), "");
  EXPECT_EQ(ProxyText({false, "fd00::1", 80}, {"http_proxy=p:1", "no_proxy=[fd00::1]:80"}), "");
}

TEST(HttpProxy, ThisMachineNeedsNone) {
  for (const char* host : {"localhost", "127.0.0.1", "::1"}) {
    EXPECT_EQ(ProxyText({false, host, 80}, {"http_proxy=p:1"}), "");
  }
}

TEST(HttpProxy, WhatCannotBeUsedIsRefusedWithoutItsPassword) {
  for (const char* value : {"socks5://u:secret@p:1", "https://u:secret@p:1", "http://u:secret@p:port"}) {
    const auto proxy = ProxyOf(kPlain, Variables({std::string("http_proxy=") + value}));
    ASSERT_FALSE(proxy) << value;
    EXPECT_EQ(proxy.error().code, ErrorCode::kUsage);
    EXPECT_EQ(proxy.error().message.find("secret"), std::string::npos);
    EXPECT_NE(proxy.error().message.find("http_proxy"), std::string::npos);
  }
}

TEST(HttpProxy, UserAndPasswordAreSentAsTheyAreMeant) {
  const auto proxy = ProxyOf(kPlain, Variables({"http_proxy=http://me:p%40ss@p:1"}));
  ASSERT_TRUE(proxy && *proxy);
  EXPECT_EQ((*proxy)->authorization, "Basic bWU6cEBzcw==");  // me:p@ss
  EXPECT_EQ((*proxy)->Text(), "p:1");
}

TEST(HttpProxy, APlainRequestNamesItsServerToTheProxy) {
  HttpTestServer proxy([](const HttpTestRequest& request, HttpTestPeer& peer) {
    peer.Answer(200,
                request.target + " " + request.Header("host") + " " + request.Header("proxy-authorization"));
  });
  HttpClientOptions options;
  options.proxy = HttpProxy{proxy.origin(), "Basic eA=="};
  HttpClient client({false, "data.lab", 8080}, options);
  for (int round = 0; round < 2; ++round) {
    std::string body;
    const auto answer = client.Call(Asked("/a?b=1"), &body);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(body, "http://data.lab:8080/a?b=1 data.lab:8080 Basic eA==");
  }
  EXPECT_EQ(proxy.connections(), 1);
}

// Takes one CONNECT, then hands bytes to and fro.
class Tunnel {
 public:
  Tunnel(int to_port, std::string answer) : answer_(std::move(answer)), to_port_(to_port) {
    auto listener = ListenTcp();
    EXPECT_TRUE(listener);
    listener_ = std::move(*listener);
    thread_ = std::thread([this] { Run(); });
  }
  ~Tunnel() {
    stop_ = true;
    thread_.join();
  }
  HttpProxy proxy() const { return {{false, "127.0.0.1", listener_.port}, "Basic eA=="}; }
  std::string asked;  // read it when the tunnel's end is known

 private:
  bool Wait(pollfd* fds, int count) {
    while (!stop_) {
      if (poll(fds, static_cast<nfds_t>(count), 20) > 0) return true;
    }
    return false;
  }
  void Run() {
    pollfd waiting{listener_.fd.Get(), POLLIN, 0};
    if (!Wait(&waiting, 1)) return;
    auto client = AcceptTcp(listener_.fd);
    if (!client || !*client) return;
    while (asked.find("\r\n\r\n") == std::string::npos) {
      pollfd reading{(*client)->Get(), POLLIN, 0};
      char bytes[512];
      if (!Wait(&reading, 1)) return;
      const ssize_t n = recv((*client)->Get(), bytes, sizeof bytes, 0);
      if (n <= 0) return;
      asked.append(bytes, static_cast<size_t>(n));
    }
    (void)send((*client)->Get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    auto server = BeginConnect("127.0.0.1", to_port_);
    if (!server) return;
    pollfd connecting{server->Get(), POLLOUT, 0};
    if (!Wait(&connecting, 1)) return;
    while (Hand(**client, *server)) {
    }
  }
  bool Hand(const Fd& a, const Fd& b) {
    pollfd fds[2] = {{a.Get(), POLLIN, 0}, {b.Get(), POLLIN, 0}};
    if (!Wait(fds, 2)) return false;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].revents == 0) continue;
      char bytes[8192];
      const ssize_t n = recv(fds[i].fd, bytes, sizeof bytes, 0);
      if (n <= 0) return false;
      if (send(fds[1 - i].fd, bytes, static_cast<size_t>(n), MSG_NOSIGNAL) != n) return false;
    }
    return true;
  }

  const std::string answer_;
  const int to_port_;
  TcpListener listener_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(HttpProxy, AnEncryptedConnectionGoesThroughATunnelAndIsVerifiedAsEver) {
  const TempFolder folder;
  const TestCertificate certificate = MakeTestCertificate(folder.Path(), "server", {"IP:127.0.0.1"});
  HttpTestServer server(
      [](const HttpTestRequest& request, HttpTestPeer& peer) { peer.Answer(200, request.target); },
      &certificate);
  Tunnel tunnel(server.origin().port, "HTTP/1.1 200 Connection established\r\n\r\n");
  HttpClientOptions options;
  options.tls.ca_file = certificate.cert_file;
  options.proxy = tunnel.proxy();
  HttpClient client({true, "127.0.0.1", 4443}, options);  // the tunnel knows better where that is
  std::string body;
  const auto answer = client.Call(Asked("/secret"), &body);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(body, "/secret");
  EXPECT_TRUE(tunnel.asked.starts_with("CONNECT 127.0.0.1:4443 HTTP/1.1\r\n"));
  EXPECT_NE(tunnel.asked.find("Proxy-Authorization: Basic eA==\r\n"), std::string::npos);
  EXPECT_EQ(tunnel.asked.find("secret"), std::string::npos);
}

TEST(HttpProxy, ARefusalOfTheProxyIsToldAsItsOwn) {
  for (const auto& [line, code] : {std::pair{"407 Proxy Authentication Required", ErrorCode::kDenied},
                                   std::pair{"403 Forbidden", ErrorCode::kUnavailable}}) {
    Tunnel tunnel(1, std::string("HTTP/1.1 ") + line + "\r\nContent-Length: 0\r\n\r\n");
    HttpClientOptions options;
    options.proxy = tunnel.proxy();
    HttpClient client({true, "s3.lab", 443}, options);
    std::string body;
    const auto answer = client.Call(Asked("/"), &body);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, code);
    EXPECT_NE(answer.error().message.find("the proxy '127.0.0.1:"), std::string::npos);
  }
}

}  // namespace
}  // namespace overcap
