// SPDX-License-Identifier: Apache-2.0
// Azure's signatures: Shared Key of requests, and shared access signatures for URLs. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/http_message.h"
#include "net/http/url.h"

namespace overcap {

struct AzureToSign {
  std::string method;
  std::string account;
  std::string path;                 // encoded, as it is sent; the emulator's has the account in it
  QueryList query;                  // not encoded
  std::vector<HttpHeader> headers;  // names in lower case, x-ms-date and x-ms-version among them
  int64_t body_size = 0;
};

std::string AzureStringToSign(const AzureToSign& request);
// The value of the header Authorization. `key` is not base64 any more.
std::string AzureAuthorization(const AzureToSign& request, std::string_view key);

struct AzureSas {
  std::string account, container, blob;  // not encoded
  std::string permissions = "r";
  int64_t expires_us = 0;
  bool https_only = true;
};
// The query of a URL that anybody may use for one blob until it expires.
std::string AzureSasQuery(const AzureSas& sas, std::string_view key);

// When a shared access signature says that it expires, or -1.
int64_t AzureSasExpiryUs(std::string_view sas);

}  // namespace overcap
