// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_proxy.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/text.h"
#include "net/http/http_head.h"
#include "net/http/net_stream.h"

namespace overcap {
namespace {

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool IsThisMachine(const std::string& host) {
  return host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host == "::1";
}

struct Setting {
  std::string name;
  std::string_view value;
};

// http_proxy, then HTTP_PROXY.
Setting Look(const Variables& variables, const std::string& name) {
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const std::string& each : {name, upper}) {
    const std::string_view value = Trim(variables.Get(each));
    if (!value.empty()) return {each, value};
  }
  return {};
}

// "host", ".domain", "host:port", "[::1]:80", "*".
bool Fits(std::string entry, const HttpOrigin& origin) {
  if (entry == "*") return true;
  const bool bracketed = entry.starts_with('[');
  const size_t colon = entry.rfind(':');
  const bool one_colon = colon != entry.npos && entry.find(':') == colon;
  if ((bracketed && colon != entry.npos && colon > entry.find(']')) || one_colon) {
    if (ParseInt(std::string_view(entry).substr(colon + 1)) != origin.port) return false;
    entry.resize(colon);
  }
  if (bracketed && entry.ends_with(']')) entry = entry.substr(1, entry.size() - 2);
  while (entry.starts_with('*') || entry.starts_with('.')) entry.erase(0, 1);
  const std::string host = Lower(origin.host);
  return !entry.empty() && (host == entry || host.ends_with("." + entry));
}

bool IsExcepted(const HttpOrigin& origin, std::string_view list) {
  for (std::string entry : Split(list, ',')) {
    entry = Lower(Trim(entry));
    if (!entry.empty() && Fits(std::move(entry), origin)) return true;
  }
  return false;
}

std::string Base64(const std::string& bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

std::string PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digits = text.substr(i, 3);
    if (digits.size() == 3 && digits[0] == '%' && std::isxdigit(static_cast<unsigned char>(digits[1])) != 0 &&
        std::isxdigit(static_cast<unsigned char>(digits[2])) != 0) {
      out.push_back(static_cast<char>(std::stoi(std::string(digits.substr(1)), nullptr, 16)));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

Result<HttpProxy> ParseProxy(const Setting& setting) {
  std::string text(setting.value);
  if (text.find("://") == text.npos) text.insert(0, "http://");
  HttpProxy proxy;
  const size_t begin = text.find("://") + 3;
  const size_t at = text.rfind('@', text.find('/', begin));
  if (at != text.npos && at >= begin) {
    const std::string user = PercentDecode(std::string_view(text).substr(begin, at - begin));
    proxy.authorization = StrCat("Basic ", Base64(user));
    text.erase(begin, at + 1 - begin);
  }
  const Result<Url> url = ParseUrl(text);
  if (!url || url->origin.tls)
    return Fail(ErrorCode::kUsage,
                StrCat("the variable '", setting.name, "' names no proxy that can be used"),
                "it should be like http://proxy:3128; leave it out for this server with no_proxy");
  proxy.origin = url->origin;
  return proxy;
}

Result<void> SendAll(int fd, std::string_view bytes, const HttpWait& wait) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN) {
      OC_TRY_VOID(wait.For(fd, POLLOUT));
    } else if (errno != EINTR) {
      return Fail(LostConnection(wait.peer(), errno));
    }
  }
  return {};
}

Result<HttpResponse> ReadAnswer(int fd, const HttpWait& wait) {
  std::string bytes;
  for (;;) {
    char chunk[4096];
    const ssize_t n = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
    if (n == 0) return Fail(LostConnection(wait.peer(), 0));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) return Fail(LostConnection(wait.peer(), errno));
    if (n < 0) {
      OC_TRY_VOID(wait.For(fd, POLLIN));
      continue;
    }
    bytes.append(chunk, static_cast<size_t>(n));
    HttpResponse head;
    OC_TRY(size, ParseHttpHead(bytes, &head));
    if (size > 0) return head;
  }
}

}  // namespace

std::string HttpProxy::Text() const {
  return StrCat(origin.host.find(':') == origin.host.npos ? origin.host : StrCat("[", origin.host, "]"), ":",
                origin.port);
}

Result<std::optional<HttpProxy>> ProxyOf(const HttpOrigin& origin, const Variables& variables) {
  if (IsThisMachine(Lower(origin.host))) return std::optional<HttpProxy>();
  Setting setting = Look(variables, origin.tls ? "https_proxy" : "http_proxy");
  if (setting.value.empty()) setting = Look(variables, "all_proxy");
  if (setting.value.empty() || IsExcepted(origin, Look(variables, "no_proxy").value))
    return std::optional<HttpProxy>();
  OC_TRY(proxy, ParseProxy(setting));
  return std::optional<HttpProxy>(std::move(proxy));
}

Result<void> OpenTunnel(const Fd& connection, const HttpProxy& proxy, const HttpOrigin& origin,
                        const HttpWait& wait) {
  const std::string place =
      StrCat(origin.host.find(':') == origin.host.npos ? origin.host : StrCat("[", origin.host, "]"), ":",
             origin.port);
  std::string text = StrCat("CONNECT ", place, " HTTP/1.1\r\nHost: ", place, "\r\n");
  if (!proxy.authorization.empty()) text += StrCat("Proxy-Authorization: ", proxy.authorization, "\r\n");
  OC_TRY_VOID(SendAll(connection.Get(), text + "\r\n", wait));
  OC_TRY(answer, ReadAnswer(connection.Get(), wait));
  if (answer.status / 100 == 2) return {};
  if (answer.status == 407)
    return Fail(ErrorCode::kDenied,
                StrCat("the proxy '", proxy.Text(), "' wants a user and a password, or others"),
                "give them in the variable: https_proxy=http://user:password@proxy:3128");
  return Fail(ErrorCode::kUnavailable, StrCat("the proxy '", proxy.Text(), "' does not connect to '", place,
                                              "': status ", answer.status));
}

}  // namespace overcap
