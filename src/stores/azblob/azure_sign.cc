// SPDX-License-Identifier: Apache-2.0
#include "stores/azblob/azure_sign.h"

#include <algorithm>

#include "base/text.h"
#include "net/handshake.h"
#include "net/http/digests.h"
#include "net/http/http_date.h"

namespace overcap {
namespace {

constexpr std::string_view kSasVersion = "2020-10-02";  // which fields are signed depends on it

std::string Lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

std::string_view Find(const std::vector<HttpHeader>& headers, std::string_view name) {
  for (const HttpHeader& header : headers)
    if (header.name == name) return header.value;
  return {};
}

std::string CanonicalHeaders(std::vector<HttpHeader> headers) {
  std::erase_if(headers, [](const HttpHeader& header) { return !header.name.starts_with("x-ms-"); });
  std::sort(headers.begin(), headers.end(),
            [](const HttpHeader& a, const HttpHeader& b) { return a.name < b.name; });
  std::string text;
  for (const HttpHeader& header : headers) text += StrCat(header.name, ":", Trim(header.value), "\n");
  return text;
}

std::string CanonicalResource(const AzureToSign& request) {
  QueryList query;
  for (const auto& [name, value] : request.query) query.emplace_back(Lower(name), value);
  std::sort(query.begin(), query.end());
  std::string text = StrCat("/", request.account, request.path);
  for (const auto& [name, value] : query) text += StrCat("\n", name, ":", value);
  return text;
}

int HexValue(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && HexValue(text[i + 1]) >= 0 && HexValue(text[i + 2]) >= 0;
    out.push_back(escape ? static_cast<char>(HexValue(text[i + 1]) << 4 | HexValue(text[i + 2])) : text[i]);
    if (escape) i += 2;
  }
  return out;
}

}  // namespace

std::string AzureStringToSign(const AzureToSign& request) {
  std::string text = request.method;
  for (const char* name : {"content-encoding", "content-language"})
    text += StrCat("\n", Find(request.headers, name));
  text += StrCat("\n", request.body_size > 0 ? std::to_string(request.body_size) : "");
  for (const char* name : {"content-md5", "content-type", "date", "if-modified-since", "if-match",
                           "if-none-match", "if-unmodified-since", "range"})
    text += StrCat("\n", Find(request.headers, name));
  return StrCat(text, "\n", CanonicalHeaders(request.headers), CanonicalResource(request));
}

std::string AzureAuthorization(const AzureToSign& request, std::string_view key) {
  return StrCat("SharedKey ", request.account, ":", Base64Of(HmacSha256(key, AzureStringToSign(request))));
}

std::string AzureSasQuery(const AzureSas& sas, std::string_view key) {
  const std::string expiry = ExtendedIsoTime(sas.expires_us);
  const std::string protocol = sas.https_only ? "https" : "https,http";
  const std::string resource = StrCat("/blob/", sas.account, "/", sas.container, "/", sas.blob);
  // permissions, start, expiry, resource, identifier, address, protocol, version, kind, snapshot, and five
  // headers
  const std::string text = StrCat(sas.permissions, "\n\n", expiry, "\n", resource, "\n\n\n", protocol, "\n",
                                  kSasVersion, "\nb\n\n\n\n\n\n");
  return EncodeQuery({{"sv", std::string(kSasVersion)},
                      {"spr", protocol},
                      {"se", expiry},
                      {"sr", "b"},
                      {"sp", sas.permissions},
                      {"sig", Base64Of(HmacSha256(key, text))}});
}

int64_t AzureSasExpiryUs(std::string_view sas) {
  for (const std::string& pair : Split(sas, '&')) {
    if (!pair.starts_with("se=")) continue;
    const std::string text = Decoded(std::string_view(pair).substr(3));
    if (const auto time = ParseIsoTime(text)) return *time;
    if (const auto time = ParseIsoTime(StrCat(text, "T00:00:00Z"))) return *time;
  }
  return -1;
}

}  // namespace overcap
