// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_client.h"

#include <limits>

#include "base/text.h"
#include "net/http/http_connect.h"
#include "net/http/http_exchange.h"
#include "sys/clock.h"

namespace overcap {
namespace {

constexpr int64_t kKeptForUs = 55'000'000;  // many servers close after a minute

int64_t NowUs() {
  return PosixClock().MonotonicUs();
}

std::string PeerText(const HttpOrigin& origin) {
  const std::string host =
      origin.host.find(':') == origin.host.npos ? origin.host : StrCat("[", origin.host, "]");
  return StrCat(host, ":", origin.port);
}

// A proxy is told the whole address; behind a tunnel nobody is told anything.
HttpRequest ThroughProxy(const HttpRequest& request, const HttpOrigin& origin, const HttpProxy& proxy) {
  HttpRequest whole = request;
  whole.target.insert(0, origin.Text());
  if (!proxy.authorization.empty()) whole.headers.push_back({"Proxy-Authorization", proxy.authorization});
  return whole;
}

}  // namespace

HttpClient::HttpClient(HttpOrigin origin, HttpClientOptions options)
    : origin_(std::move(origin)), options_(std::move(options)), peer_(PeerText(origin_)) {}

HttpClient::~HttpClient() = default;

Result<HttpResponse> HttpClient::Call(const HttpRequest& request, std::string* body, size_t most,
                                      const HttpCancel* cancel) {
  return Run(request, HttpBodyTo{body, most, nullptr}, cancel);
}

Result<HttpResponse> HttpClient::Stream(const HttpRequest& request, const HttpPieceTaker& take,
                                        const HttpCancel* cancel) {
  return Run(request, HttpBodyTo{nullptr, 0, &take}, cancel);
}

size_t HttpClient::kept() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

// The one used last is the one most likely still open. Those that are too old are dropped on the way.
std::unique_ptr<HttpLink> HttpClient::TakeKept() {
  std::vector<Kept> old;  // closed outside of the lock
  const std::lock_guard lock(mutex_);
  const int64_t now = NowUs();
  while (!kept_.empty()) {
    Kept last = std::move(kept_.back());
    kept_.pop_back();
    if (now - last.since_us < kKeptForUs && last.link->Fresh()) return std::move(last.link);
    old.push_back(std::move(last));
  }
  return nullptr;
}

void HttpClient::Keep(std::unique_ptr<HttpLink> link) {
  const std::lock_guard lock(mutex_);
  if (kept_.size() < options_.most_kept) kept_.push_back({std::move(link), NowUs()});
}

Result<std::shared_ptr<TlsContext>> HttpClient::Tls() {
  const std::lock_guard lock(mutex_);
  if (!tls_) {
    OC_TRY(made, TlsContext::Make(options_.tls));
    tls_ = std::move(made);
  }
  return tls_;
}

Result<Fd> HttpClient::ConnectSocket(const HttpWait& wait) {
  if (!options_.proxy) return ConnectHttp(origin_, wait);
  Result<Fd> fd = ConnectHttp(options_.proxy->origin, wait);
  if (!fd) {
    fd.error().message += StrCat(" (through the proxy '", options_.proxy->Text(), "')");
    return fd;
  }
  if (origin_.tls) OC_TRY_VOID(OpenTunnel(*fd, *options_.proxy, origin_, wait));
  return fd;
}

Result<std::unique_ptr<HttpLink>> HttpClient::Connect(HttpWait* wait) {
  std::shared_ptr<TlsContext> tls;
  if (origin_.tls) {
    OC_TRY(made, Tls());
    tls = std::move(made);
  }
  wait->set_connecting(true);
  OC_TRY(fd, ConnectSocket(*wait));
  std::unique_ptr<NetStream> stream;
  if (tls) {
    OC_TRY(secure, tls->Connect(std::move(fd), origin_.host, *wait));
    stream = std::move(secure);
  } else {
    stream = MakePlainStream(std::move(fd), peer_);
  }
  wait->set_connecting(false);
  return std::make_unique<HttpLink>(std::move(stream));
}

Result<HttpResponse> HttpClient::Run(const HttpRequest& request, const HttpBodyTo& to,
                                     const HttpCancel* cancel) {
  OC_TRY_VOID(CheckHttpRequest(request));
  HttpWait wait(peer_, request.deadlines, cancel);
  std::optional<HttpRequest> through;
  if (options_.proxy && !origin_.tls) through = ThroughProxy(request, origin_, *options_.proxy);
  for (bool may_be_old = true;; may_be_old = false) {
    std::unique_ptr<HttpLink> link = may_be_old ? TakeKept() : nullptr;
    const bool old = link != nullptr;
    if (!old) {
      OC_TRY(fresh, Connect(&wait));
      link = std::move(fresh);
    }
    bool reusable = false;
    auto answer = Exchange(*link, origin_, through ? *through : request, to, wait, &reusable);
    // The server closed an idle connection while the request was on its way: that is nobody's failure.
    if (!answer && old && request.repeatable && link->lost() && !link->heard()) continue;
    if (reusable) Keep(std::move(link));
    return answer;
  }
}

}  // namespace overcap
