// SPDX-License-Identifier: Apache-2.0
#include "net/http/url.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kLongestUrl = 8192;

tl::unexpected<Error> BadUrl(std::string_view why) {
  return Fail(ErrorCode::kUsage, StrCat("this is not a URL that can be used: ", why),
              "write it as https://host, https://host:8443 or http://host:8080/path");
}

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

bool IsHostByte(char c) {
  return IsUnreserved(c) && c != '~';
}

bool IsAddressByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
}

Result<void> TakePort(std::string_view text, int* port) {
  const auto number = text.size() <= 5 ? ParseInt(text) : std::nullopt;
  if (!number || *number < 1 || *number > 65535) return BadUrl("its port is no number of 1 to 65535");
  *port = static_cast<int>(*number);
  return {};
}

// "host", "host:port", "[::1]", "[::1]:port"
Result<void> TakeAuthority(std::string_view text, HttpOrigin* origin) {
  if (text.find('@') != text.npos) return BadUrl("a user or a password may not stand in it");
  std::string_view host = text, port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == text.npos) return BadUrl("its '[' is not closed");
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    has_port = !port.empty();
    if (has_port && port[0] != ':') return BadUrl("after ']' comes ':' and a port, or nothing");
    if (has_port) port.remove_prefix(1);
    if (host.empty() || !std::all_of(host.begin(), host.end(), IsAddressByte))
      return BadUrl("between '[' and ']' stands an IPv6 address");
  } else {
    if (const size_t colon = text.find(':'); colon != text.npos) {
      host = text.substr(0, colon), port = text.substr(colon + 1), has_port = true;
    }
    if (host.empty() || host.size() > 253 || !std::all_of(host.begin(), host.end(), IsHostByte))
      return BadUrl("its host is no name and no address");
  }
  origin->host = host;
  return has_port ? TakePort(port, &origin->port) : Result<void>{};
}

bool IsTargetByte(char c) {
  return c > ' ' && c < 0x7f && c != '"' && c != '<' && c != '>' && c != '\\' && c != '#';
}

}  // namespace

std::string HttpOrigin::HostHeader() const {
  std::string text = host.find(':') == host.npos ? host : StrCat("[", host, "]");
  if (port != (tls ? 443 : 80)) text += StrCat(":", port);
  return text;
}

std::string HttpOrigin::Text() const {
  return StrCat(tls ? "https://" : "http://", HostHeader());
}

Result<Url> ParseUrl(std::string_view text) {
  if (text.size() > kLongestUrl) return BadUrl("it is too long");
  Url url;
  if (text.starts_with("https://")) {
    url.origin.tls = true, url.origin.port = 443;
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
  } else {
    return BadUrl("it begins with neither 'https://' nor 'http://'");
  }
  const size_t end = std::min(text.find_first_of("/?#"), text.size());
  OC_TRY_VOID(TakeAuthority(text.substr(0, end), &url.origin));
  text.remove_prefix(end);
  if (!std::all_of(text.begin(), text.end(), IsTargetByte))
    return BadUrl("it holds blanks or odd characters");
  const size_t question = text.find('?');
  url.path = text.substr(0, question);
  if (url.path.empty()) url.path = "/";
  if (question != text.npos) url.query = text.substr(question + 1);
  return url;
}

std::string PercentEncode(std::string_view text, std::string_view keep) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    if (IsUnreserved(c) || keep.find(c) != keep.npos) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

std::string EncodeQuery(const QueryList& query) {
  std::string out;
  for (const auto& [name, value] : query) {
    if (!out.empty()) out.push_back('&');
    out += PercentEncode(name);
    out.push_back('=');
    out += PercentEncode(value);
  }
  return out;
}

}  // namespace overcap
