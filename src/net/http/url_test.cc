// SPDX-License-Identifier: Apache-2.0
#include "net/http/url.h"

#include <gtest/gtest.h>

namespace overcap {
namespace {

TEST(Url, IsTakenApart) {
  const Url url = *ParseUrl("https://s3.eu-west-1.amazonaws.com/bucket/key%20x?list-type=2&a");
  EXPECT_EQ(url.origin, (HttpOrigin{true, "s3.eu-west-1.amazonaws.com", 443}));
  EXPECT_EQ(url.path, "/bucket/key%20x");
  EXPECT_EQ(url.query, "list-type=2&a");
}

TEST(Url, HasUsualPortsAndAPath) {
  EXPECT_EQ(ParseUrl("http://h")->origin.port, 80);
  EXPECT_EQ(ParseUrl("http://h")->path, "/");
  EXPECT_EQ(ParseUrl("http://h:8080?x=1")->origin.port, 8080);
  EXPECT_EQ(ParseUrl("http://h:8080?x=1")->path, "/");
  EXPECT_EQ(ParseUrl("http://h:8080?x=1")->query, "x=1");
}

TEST(Url, TakesIpv6InBrackets) {
  const Url url = *ParseUrl("http://[fd00::1]:2379/v3");
  EXPECT_EQ(url.origin.host, "fd00::1");
  EXPECT_EQ(url.origin.port, 2379);
  EXPECT_EQ(url.origin.Text(), "http://[fd00::1]:2379");
  EXPECT_EQ(ParseUrl("https://[::1]")->origin.HostHeader(), "[::1]");
}

TEST(Url, RefusesWhatIsNone) {
  for (const char* text : {"",
                           "host",
                           "ftp://host",
                           "http://",
                           "http:///x",
                           "http://:80",
                           "http://h:0",
                           "http://h:65536",
                           "http://h:x",
                           "http://h:",
                           "http://h:+1",
                           "http://a b",
                           "http://h/a b",
                           "http://h/\n",
                           "http://h/#x",
                           "http://[::1",
                           "http://[]",
                           "http://[g]",
                           "http://[::1]x",
                           "http://h\xc3\xa4",
                           "HTTP://h"}) {
    const auto url = ParseUrl(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::kUsage);
  }
  EXPECT_FALSE(ParseUrl("http://h/" + std::string(10'000, 'a')));
}

TEST(Url, NeverRepeatsAPassword) {
  const auto url = ParseUrl("https://me:hunter2@host/");
  ASSERT_FALSE(url);
  EXPECT_EQ(url.error().message.find("hunter2"), std::string::npos);
}

TEST(Url, EncodesBytes) {
  EXPECT_EQ(PercentEncode("a/b c+d=e&\xc3\xa9~", "/"), "a/b%20c%2Bd%3De%26%C3%A9~");
  EXPECT_EQ(EncodeQuery({{"prefix", "a b"}, {"uploads", ""}}), "prefix=a%20b&uploads=");
}

}  // namespace
}  // namespace overcap
