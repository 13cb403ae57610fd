// SPDX-License-Identifier: Apache-2.0
#include "net/testing/http_test_server.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int kPatienceMs = 20'000;

std::string Lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

// A write to a closed connection must not end the test.
void WithoutPipeSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

SSL_CTX* MakeContext(const TestCertificate& certificate, const std::string& client_ca) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  if (SSL_CTX_use_certificate_chain_file(context, certificate.cert_file.c_str()) != 1) abort();
  if (SSL_CTX_use_PrivateKey_file(context, certificate.key_file.c_str(), SSL_FILETYPE_PEM) != 1) abort();
  if (!client_ca.empty()) {
    if (SSL_CTX_load_verify_file(context, client_ca.c_str()) != 1) abort();
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

// Reads one request; false at the end of the connection.
bool ReadRequest(HttpTestPeer& peer, std::string* ahead, HttpTestRequest* request) {
  size_t end;
  while ((end = ahead->find("\r\n\r\n")) == ahead->npos) {
    const std::string more = peer.Read(64 * 1024);
    if (more.empty()) return false;
    *ahead += more;
  }
  const std::vector<std::string> lines = Split(ahead->substr(0, end), '\n');
  const std::vector<std::string> words = Split(Trim(lines[0]), ' ');
  if (words.size() != 3) return false;
  request->method = words[0], request->target = words[1];
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    request->headers.push_back(
        {Lower(lines[i].substr(0, colon)), std::string(Trim(lines[i].substr(colon + 1)))});
  }
  ahead->erase(0, end + 4);
  const auto length = static_cast<size_t>(ParseInt(request->Header("content-length")).value_or(0));
  while (ahead->size() < length) {
    const std::string more = peer.Read(length - ahead->size());
    if (more.empty()) return false;
    *ahead += more;
  }
  request->body = ahead->substr(0, length);
  ahead->erase(0, length);
  return true;
}

}  // namespace

std::string HttpTestRequest::Header(std::string_view name) const {
  for (const HttpHeader& header : headers)
    if (header.name == name) return header.value;
  return "";
}

void HttpTestPeer::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ssl_ != nullptr ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                                      : send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return Close();
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void HttpTestPeer::Answer(int status, std::string_view body, const std::vector<HttpHeader>& headers) {
  std::string text = StrCat("HTTP/1.1 ", status, " Said\r\nContent-Length: ", body.size(), "\r\n");
  for (const HttpHeader& header : headers) text += StrCat(header.name, ": ", header.value, "\r\n");
  Send(StrCat(text, "\r\n", body));
}

void HttpTestPeer::Reset() {
  const linger hard{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  open_ = false;
}

bool HttpTestPeer::WaitUntilGone() {
  pollfd waiting{fd_, POLLIN | POLLRDHUP, 0};
  return poll(&waiting, 1, kPatienceMs) > 0 && (waiting.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

std::string HttpTestPeer::Read(size_t size) {
  std::string bytes(size, '\0');
  const ssize_t n = ssl_ != nullptr ? SSL_read(ssl_, bytes.data(), static_cast<int>(size))
                                    : recv(fd_, bytes.data(), size, 0);
  bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return bytes;
}

HttpTestServer::HttpTestServer(Handler handler, const TestCertificate* certificate,
                               const std::string& client_ca)
    : handler_(std::move(handler)),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      tls_(certificate != nullptr ? MakeContext(*certificate, client_ca) : nullptr, SSL_CTX_free) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (bind(listener_.Get(), generic, size) != 0 || listen(listener_.Get(), 128) != 0 ||
      getsockname(listener_.Get(), generic, &size) != 0)
    abort();
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

HttpTestServer::~HttpTestServer() {
  stop_ = true;
  shutdown(listener_.Get(), SHUT_RDWR);
  acceptor_.join();
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

HttpOrigin HttpTestServer::origin() const {
  return {tls_ != nullptr, "127.0.0.1", port_};
}

void HttpTestServer::Accept() {
  while (!stop_) {
    const int fd = accept4(listener_.Get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const std::lock_guard lock(mutex_);
    if (stop_) {
      close(fd);
      return;
    }
    open_.push_back(fd);
    threads_.emplace_back([this, fd, number = connections_++] { Serve(fd, number); });
  }
}

void HttpTestServer::Serve(int fd, int number) {
  WithoutPipeSignal();
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl(tls_ ? SSL_new(tls_.get()) : nullptr, SSL_free);
  HttpTestPeer peer(fd, ssl.get());
  if (!ssl || (SSL_set_fd(ssl.get(), fd) == 1 && SSL_accept(ssl.get()) == 1)) ServeOver(peer, number);
  const std::lock_guard lock(mutex_);
  std::erase(open_, fd);
  close(fd);
}

void HttpTestServer::ServeOver(HttpTestPeer& peer, int number) {
  std::string ahead;
  for (int nth = 0; peer.open(); ++nth) {
    HttpTestRequest request;
    request.connection = number, request.nth = nth;
    if (!ReadRequest(peer, &ahead, &request)) return;
    ++requests_;
    handler_(request, peer);
  }
}

}  // namespace overcap
