// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_exchange.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "net/http/http_body.h"

namespace overcap {
namespace {

constexpr int kMostInterim = 10;  // answers of 1xx before the real one

bool OneLine(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos;
}

Result<HttpResponse> ReadOneHead(HttpLink& link, const HttpWait& wait) {
  HttpResponse head;
  while (true) {
    if (!link.ahead().empty()) {
      auto size = ParseHttpHead(link.ahead(), &head);
      if (!size)
        return Fail(size.error().code, StrCat("'", wait.peer(), "': ", size.error().message),
                    "look whether an HTTP server is at that host and port");
      link.Take(*size);
      if (*size > 0) return head;
    }
    OC_TRY(more, link.ReadMore(wait));
    if (!more) return Fail(LostConnection(wait.peer(), 0));
  }
}

Result<HttpResponse> ReadHead(HttpLink& link, const HttpWait& wait) {
  for (int i = 0; i < kMostInterim; ++i) {
    OC_TRY(head, ReadOneHead(link, wait));
    if (head.status >= 200) return head;
    if (head.status == 101) break;
  }
  return Fail(ErrorCode::kUnavailable, StrCat("'", wait.peer(), "' does not come to its answer"));
}

}  // namespace

Result<void> CheckHttpRequest(const HttpRequest& request) {
  bool fine = OneLine(request.method) && request.target.starts_with('/');
  for (const char c : request.target) fine = fine && c > ' ' && c != 0x7f;
  for (const HttpHeader& header : request.headers)
    fine = fine && OneLine(header.name) && OneLine(header.value);
  if (fine) return {};
  return Fail(ErrorCode::kUsage,
              "this cannot be asked by HTTP: a line break or a blank stands where none may be");
}

std::string HttpRequestHead(const HttpOrigin& origin, const HttpRequest& request) {
  std::string head;
  head.reserve(512);
  for (const std::string_view piece :
       {std::string_view(request.method), std::string_view(" "), std::string_view(request.target),
        std::string_view(" HTTP/1.1\r\nHost: ")})
    head += piece;
  head += origin.HostHeader();
  for (const HttpHeader& header : request.headers) {
    head += "\r\n";
    head += header.name;
    head += ": ";
    head += header.value;
  }
  if (request.has_body || !request.body.empty()) {
    size_t size = 0;
    for (const std::string_view piece : request.body) size += piece.size();
    head += StrCat("\r\nContent-Length: ", size);
  }
  head += "\r\n\r\n";
  return head;
}

Result<HttpResponse> Exchange(HttpLink& link, const HttpOrigin& origin, const HttpRequest& request,
                              const HttpBodyTo& to, const HttpWait& wait, bool* reusable) {
  *reusable = false;
  link.Quiet();
  const std::string text = HttpRequestHead(origin, request);
  std::vector<std::string_view> pieces = {text};
  pieces.insert(pieces.end(), request.body.begin(), request.body.end());
  OC_TRY(sent_all, link.Send(std::move(pieces), wait));
  OC_TRY(head, ReadHead(link, wait));
  auto framing = FramingOf(request.method, head);
  if (!framing) return Fail(framing.error().code, StrCat("'", wait.peer(), "': ", framing.error().message));
  const bool more = framing->kind != HttpFraming::Kind::kLength ||
                    framing->length > static_cast<int64_t>(link.ahead().size());
  if (more) link.AckNow();
  OC_TRY(complete, ReadHttpBody(link, head, *framing, to, wait));
  *reusable = sent_all && complete && framing->keep_alive && link.ahead().empty();
  return head;
}

}  // namespace overcap
