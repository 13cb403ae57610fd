// SPDX-License-Identifier: Apache-2.0
// Whatever a server sends instead of HTTP is refused in one line, and never read past its end.
#include "inputs.h"
#include "net/http/chunk_decoder.h"
#include "net/http/http_head.h"
#include "net/http/url.h"

namespace overcap {
namespace {

const std::vector<std::string> kHeads = {
    "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nETag: \"a\"\r\n\r\n",
    "HTTP/1.1 206 Partial Content\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n",
    "HTTP/1.0 503 Slow Down\r\nConnection: close\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"};
const std::vector<std::string> kHeadWords = {
    "\r\n", "\r\n\r\n", ":",       "Content-Length: 5\r\n",          "-1",
    "\t",   "\xff",     "HTTP/1.", "Transfer-Encoding: chunked\r\n", "99999999999999999999",
    "close"};

TEST(HttpFuzz, HeadsAreReadOrRefused) {
  ForEachInput(Mutator(kHeads, kHeadWords, 1).Gently(), [](const std::string& text) {
    HttpResponse head;
    const auto size = ParseHttpHead(text, &head);
    if (!size) return ExpectOneLine(size.error(), ErrorCode::kUnavailable);
    EXPECT_LE(*size, text.size());
    if (*size == 0) return false;
    EXPECT_GE(head.status, 100);
    const auto framing = FramingOf("GET", head);
    if (!framing) return ExpectOneLine(framing.error(), ErrorCode::kUnavailable);
    EXPECT_GE(framing->length, 0);
    return true;
  });
}

// The same bytes in pieces of any size give the same body or the same refusal.
TEST(HttpFuzz, ChunksAreReadOrRefused) {
  const auto decode = [](std::string_view bytes, size_t step, bool* done) -> std::string {
    ChunkDecoder decoder;
    std::string out;
    for (size_t at = 0; at < bytes.size(); at += step) {
      std::string_view piece = bytes.substr(at, step);
      while (!piece.empty() && !decoder.done()) {
        const auto data = decoder.Next(&piece);
        if (!data) {
          ExpectOneLine(data.error(), ErrorCode::kUnavailable);
          return "error";
        }
        out += *data;
      }
    }
    *done = decoder.done();
    return out;
  };
  ForEachInput(Mutator({"5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n", "0\r\n\r\n"},
                       {"\r\n", "0", "ffffffff", "7fffffffffffffff", ";", "0\r\n\r\n", "\n"}, 2)
                   .Gently(),
               [&](const std::string& text) {
                 bool whole = false, pieces = false;
                 const std::string at_once = decode(text, text.size() + 1, &whole);
                 EXPECT_EQ(decode(text, 3, &pieces), at_once);
                 EXPECT_EQ(whole, pieces);
                 EXPECT_LE(at_once.size(), std::max<size_t>(text.size(), 5));
                 return whole;
               });
}

TEST(HttpFuzz, UrlsAreReadOrRefused) {
  ForEachInput(Mutator({"https://host:8443/a/b?c=d", "http://[::1]:80/", "http://127.0.0.1"},
                       {"://", "@", "[", "]", ":", "%00", "\r\n", "?", "65536"}, 3)
                   .Gently(),
               [](const std::string& text) {
                 const auto url = ParseUrl(text);
                 if (!url) return ExpectOneLine(url.error(), ErrorCode::kUsage);
                 const auto again = ParseUrl(url->origin.Text() + url->path);
                 EXPECT_TRUE(again && again->origin == url->origin && again->path == url->path);
                 EXPECT_EQ(url->path.find_first_of("\r\n "), std::string::npos);
                 return true;
               });
}

}  // namespace
}  // namespace overcap
