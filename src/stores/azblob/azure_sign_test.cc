// SPDX-License-Identifier: Apache-2.0
#include "stores/azblob/azure_sign.h"

#include <gtest/gtest.h>

#include "net/http/http_date.h"

namespace overcap {
namespace {

// The example of the manual of Azure Storage ("Authorize with Shared Key"), List Blobs.
TEST(AzureSign, BuildsTheTextOfTheManual) {
  AzureToSign request;
  request.method = "GET";
  request.account = "myaccount";
  request.path = "/mycontainer";
  request.query = {{"restype", "container"}, {"comp", "metadata"}, {"timeout", "20"}};
  request.headers = {{"x-ms-version", "2015-02-21"}, {"x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"}};
  EXPECT_EQ(AzureStringToSign(request),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 "
            "GMT\nx-ms-version:2015-02-21\n/myaccount/"
            "mycontainer\ncomp:metadata\nrestype:container\ntimeout:20");
}

TEST(AzureSign, SignsHeadersInTheirPlaces) {
  AzureToSign request;
  request.method = "PUT";
  request.account = "a";
  request.path = "/a/c/b%20x";  // the emulator's: the account twice
  request.body_size = 11;
  request.headers = {{"x-ms-meta-m2", " v2 "},        {"content-md5", "MD5"},
                     {"content-type", "text/plain"},  {"if-none-match", "*"},
                     {"x-ms-blob-type", "BlockBlob"}, {"range", "bytes=0-1"}};
  EXPECT_EQ(AzureStringToSign(request),
            "PUT\n\n\n11\nMD5\ntext/plain\n\n\n\n*\n\nbytes=0-1\nx-ms-blob-type:BlockBlob\nx-ms-meta-m2:v2\n/"
            "a/a/c/b%20x");
}

TEST(AzureSign, UrlsSayWhatTheyPermit) {
  AzureSas sas;
  sas.account = "acct", sas.container = "c", sas.blob = "a b";
  sas.expires_us = *ParseIsoTime("2030-01-02T03:04:05Z");
  const std::string query = AzureSasQuery(sas, "key");
  EXPECT_TRUE(query.starts_with("sv=2020-10-02&spr=https&se=2030-01-02T03%3A04%3A05Z&sr=b&sp=r&sig="))
      << query;
  EXPECT_EQ(AzureSasExpiryUs(query), sas.expires_us);
}

TEST(AzureSign, FindsWhenASignatureExpires) {
  EXPECT_EQ(AzureSasExpiryUs("sv=x&se=1994-11-06T08:49:37Z&sig=y"), 784'111'777'000'000);
  EXPECT_EQ(AzureSasExpiryUs("se=1994-11-06&sig=y"), *ParseIsoTime("1994-11-06T00:00:00Z"));
  EXPECT_EQ(AzureSasExpiryUs("sv=x&sig=y"), -1);
  EXPECT_EQ(AzureSasExpiryUs("se=soon"), -1);
}

}  // namespace
}  // namespace overcap
