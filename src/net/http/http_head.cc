// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_head.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace overcap {
namespace {

// How a server that expects TLS begins its answer to plain HTTP: an alert of TLS 1.x, 2 bytes long.
constexpr std::string_view kTlsAlert("\x15\x03", 2);

tl::unexpected<Error> Odd(std::string_view what) {
  return Fail(ErrorCode::kUnavailable, StrCat("the answer is not HTTP: ", what));
}

bool IsTokenByte(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsValueByte(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

// "HTTP/1.1 200 OK"; the words behind the number may be missing.
Result<void> TakeStatusLine(std::string_view line, HttpResponse* out) {
  if (line.size() < 12 || !line.starts_with("HTTP/1.") || !IsDigit(line[7]) || line[8] != ' ')
    return Odd("its first line is not that of HTTP/1.x");
  if (!IsDigit(line[9]) || !IsDigit(line[10]) || !IsDigit(line[11]) || (line.size() > 12 && line[12] != ' '))
    return Odd("its first line has no status");
  if (!std::all_of(line.begin(), line.end(), IsValueByte)) return Odd("its first line has odd bytes");
  out->minor_version = line[7] - '0';
  out->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  if (out->status < 100) return Odd("its status is below 100");
  return {};
}

Result<void> TakeHeaderLine(std::string_view line, HttpResponse* out) {
  const size_t colon = line.find(':');
  if (colon == 0 || colon == line.npos) return Odd("a header line has no name");
  const std::string_view name = line.substr(0, colon), value = line.substr(colon + 1);
  if (!std::all_of(name.begin(), name.end(), IsTokenByte)) return Odd("the name of a header has odd bytes");
  if (!std::all_of(value.begin(), value.end(), IsValueByte))
    return Odd("the value of a header has odd bytes");
  if (out->headers.size() == kMostHttpHeaders) return Odd("it has too many headers");
  out->headers.push_back({Lower(name), std::string(Trim(value))});
  return {};
}

Result<void> TakeLines(std::string_view head, HttpResponse* out) {
  bool first = true;
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    OC_TRY_VOID(first ? TakeStatusLine(line, out) : TakeHeaderLine(line, out));
    first = false;
    head.remove_prefix(end + 2);
  }
  return {};
}

// What all headers of the name say, or nullopt; an error when they differ.
Result<std::optional<int64_t>> LengthOf(const HttpResponse& head) {
  std::optional<int64_t> length;
  for (const HttpHeader& header : head.headers) {
    if (header.name != "content-length") continue;
    const std::string& text = header.value;
    const bool digits = !text.empty() && text.size() <= 18 && std::all_of(text.begin(), text.end(), IsDigit);
    if (!digits) return Odd("its Content-Length is no number");
    const int64_t value = *ParseInt(text);
    if (length && *length != value) return Odd("it has two lengths");
    length = value;
  }
  return length;
}

bool StaysOpen(const HttpResponse& head) {
  bool open = head.minor_version >= 1;
  for (const HttpHeader& header : head.headers) {
    if (header.name != "connection") continue;
    for (const std::string& word : Split(Lower(header.value), ',')) {
      if (Trim(word) == "close") return false;
      if (Trim(word) == "keep-alive") open = true;
    }
  }
  return open;
}

bool HasNoBody(std::string_view method, int status) {
  return method == "HEAD" || status < 200 || status == 204 || status == 304;
}

}  // namespace

std::string_view HttpResponse::Find(std::string_view name) const {
  for (const HttpHeader& header : headers)
    if (header.name == name) return header.value;
  return {};
}

Result<size_t> ParseHttpHead(std::string_view bytes, HttpResponse* out) {
  if (bytes.starts_with(kTlsAlert)) return Odd("it speaks TLS: write https:// instead of http://");
  const std::string_view start = bytes.substr(0, 5);
  if (start != std::string_view("HTTP/").substr(0, start.size()))
    return Odd("it does not begin with 'HTTP/'");
  const size_t end = bytes.substr(0, kLargestHttpHead).find("\r\n\r\n");
  if (end == bytes.npos) {
    if (bytes.size() >= kLargestHttpHead) return Odd("its headers are too large");
    return size_t{0};
  }
  *out = {};
  OC_TRY_VOID(TakeLines(bytes.substr(0, end + 2), out));
  return end + 4;
}

Result<HttpFraming> FramingOf(std::string_view method, const HttpResponse& head) {
  HttpFraming framing;
  framing.keep_alive = StaysOpen(head);
  if (HasNoBody(method, head.status)) return framing;
  OC_TRY(length, LengthOf(head));
  std::string coding;
  for (const HttpHeader& header : head.headers)
    if (header.name == "transfer-encoding") coding += StrCat(coding.empty() ? "" : ",", Lower(header.value));
  if (!coding.empty()) {
    if (coding != "chunked") return Odd("its Transfer-Encoding is not 'chunked'");
    if (length) return Odd("it is chunked and has a length");
    framing.kind = HttpFraming::Kind::kChunked;
  } else if (length) {
    framing.length = *length;
  } else {
    framing.kind = HttpFraming::Kind::kUntilClose;
    framing.keep_alive = false;
  }
  return framing;
}

}  // namespace overcap
