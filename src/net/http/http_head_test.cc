// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_head.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "net/http/chunk_decoder.h"

namespace overcap {
namespace {

HttpResponse Head(const std::string& headers, const std::string& first = "HTTP/1.1 200 OK") {
  HttpResponse head;
  const auto size = ParseHttpHead(first + "\r\n" + headers + "\r\n", &head);
  EXPECT_TRUE(size && *size > 0);
  return head;
}

bool Refused(const std::string& text) {
  HttpResponse head;
  return !ParseHttpHead(text, &head);
}

TEST(HttpHead, IsReadWhenItIsAllThere) {
  const std::string text = "HTTP/1.1 404 Not Found\r\nETag:  \"x\" \r\nX-Y:\r\n\r\nbody";
  HttpResponse head;
  for (size_t i = 0; i < text.size() - 4; ++i) EXPECT_EQ(*ParseHttpHead(text.substr(0, i), &head), 0u);
  EXPECT_EQ(*ParseHttpHead(text, &head), text.size() - 4);
  EXPECT_EQ(head.status, 404);
  EXPECT_EQ(head.headers, (std::vector<HttpHeader>{{"etag", "\"x\""}, {"x-y", ""}}));
  EXPECT_EQ(head.Find("etag"), "\"x\"");
  EXPECT_EQ(head.Find("none"), "");
}

TEST(HttpHead, MayLackWordsBehindTheStatus) {
  EXPECT_EQ(Head("", "HTTP/1.1 204").status, 204);
  EXPECT_EQ(Head("", "HTTP/1.0 200 ").minor_version, 0);
}

TEST(HttpHead, IsRefusedWhenOdd) {
  for (const char* text :
       {"<html>", "HTTX", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: x\r\n\r\n", "HTTP/1.1 200 OK\r\na b: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: x\r\n folded\r\n\r\n", "HTTP/1.1 200 OK\r\na: x\ny\r\n\r\n"})
    EXPECT_TRUE(Refused(text)) << text;
  EXPECT_TRUE(Refused("HTTP/1.1 200 OK\r\na: " + std::string(70'000, 'x')));
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 300; ++i) many += "a: b\r\n";
  EXPECT_TRUE(Refused(many + "\r\n"));
}

TEST(HttpFraming, KnowsWhereABodyEnds) {
  using Kind = HttpFraming::Kind;
  EXPECT_EQ(FramingOf("GET", Head("Content-Length: 12\r\n"))->length, 12);
  EXPECT_EQ(FramingOf("GET", Head("Content-Length: 12\r\nContent-Length: 12\r\n"))->length, 12);
  EXPECT_EQ(FramingOf("GET", Head("Transfer-Encoding: Chunked\r\n"))->kind, Kind::kChunked);
  EXPECT_EQ(FramingOf("GET", Head(""))->kind, Kind::kUntilClose);
  EXPECT_FALSE(FramingOf("GET", Head(""))->keep_alive);
  EXPECT_EQ(FramingOf("HEAD", Head("Content-Length: 12\r\n"))->length, 0);
  EXPECT_EQ(FramingOf("GET", Head("", "HTTP/1.1 204 None"))->length, 0);
  EXPECT_EQ(FramingOf("GET", Head("", "HTTP/1.1 304 Same"))->length, 0);
}

TEST(HttpFraming, RefusesWhatIsAmbiguous) {
  for (const char* headers :
       {"Content-Length: 1\r\nContent-Length: 2\r\n", "Content-Length: -1\r\n", "Content-Length: +1\r\n",
        "Content-Length: 1, 1\r\n", "Content-Length:\r\n", "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"})
    EXPECT_FALSE(FramingOf("GET", Head(headers))) << headers;
}

TEST(HttpFraming, KnowsWhetherTheConnectionStays) {
  EXPECT_TRUE(FramingOf("GET", Head("Content-Length: 0\r\n"))->keep_alive);
  EXPECT_FALSE(FramingOf("GET", Head("Content-Length: 0\r\nConnection: x, Close\r\n"))->keep_alive);
  EXPECT_FALSE(FramingOf("GET", Head("Content-Length: 0\r\n", "HTTP/1.0 200 OK"))->keep_alive);
  EXPECT_TRUE(FramingOf("GET", Head("Content-Length: 0\r\nConnection: Keep-Alive\r\n", "HTTP/1.0 200 OK"))
                  ->keep_alive);
}

// What the decoder makes of the bytes given `step` at once, or "error".
std::string Decode(const std::string& bytes, size_t step, std::string* rest = nullptr) {
  ChunkDecoder decoder;
  std::string out;
  for (size_t at = 0; at < bytes.size() && !decoder.done(); at += step) {
    std::string_view piece = std::string_view(bytes).substr(at, step);
    while (!piece.empty() && !decoder.done()) {
      const auto data = decoder.Next(&piece);
      if (!data) return "error";
      out += *data;
    }
    if (rest != nullptr) *rest = piece;
  }
  return decoder.done() ? out : "open";
}

TEST(ChunkDecoder, GivesTheSameHoweverTheBytesCome) {
  const std::string body = "5\r\nhello\r\nA;ext=\"1\"\r\n, 0123456\n\r\n0\r\nTrailer: x\r\n\r\n";
  for (size_t step = 1; step <= body.size(); ++step)
    EXPECT_EQ(Decode(body, step), "hello, 0123456\n") << step;
  EXPECT_EQ(Decode("0\r\n\r\n", 1), "");
}

TEST(ChunkDecoder, TakesNothingBehindTheEnd) {
  std::string rest;
  EXPECT_EQ(Decode("1\r\nx\r\n0\r\n\r\nHTTP", 100, &rest), "x");
  EXPECT_EQ(rest, "HTTP");
}

TEST(ChunkDecoder, RefusesWhatIsOdd) {
  for (const char* body : {"\r\n", "x\r\n", "-1\r\n", "5\nhello", "5\r\nhelloX", "5\r\nhello\rX",
                           "1000000000000000\r\n", "0x5\r\nhello", "0\r\n\n", "0\r\n\rX"})
    EXPECT_EQ(Decode(body, 3), "error") << body;
  EXPECT_EQ(Decode("5;" + std::string(100'000, 'e') + "\r\nhello\r\n0\r\n\r\n", 1000), "error");
  EXPECT_EQ(Decode("5\r\nhel", 1), "open");
}

}  // namespace
}  // namespace overcap
