// SPDX-License-Identifier: Apache-2.0
// The plain functions instead of EVP: its first use costs more than many a request.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "net/http/digests.h"

#include <openssl/md5.h>
#include <openssl/sha.h>

namespace overcap {
namespace {

constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int Base64Value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

Sha256Bytes Sha256OfPieces(std::span<const std::string_view> pieces) {
  SHA256_CTX context;
  SHA256_Init(&context);
  for (const std::string_view piece : pieces) SHA256_Update(&context, piece.data(), piece.size());
  Sha256Bytes digest;
  SHA256_Final(digest.data(), &context);
  return digest;
}

Sha256Bytes Sha256OfText(std::string_view text) {
  return Sha256OfPieces(std::span(&text, 1));
}

std::array<uint8_t, 16> Md5OfPieces(std::span<const std::string_view> pieces) {
  MD5_CTX context;
  MD5_Init(&context);
  for (const std::string_view piece : pieces) MD5_Update(&context, piece.data(), piece.size());
  std::array<uint8_t, 16> digest;
  MD5_Final(digest.data(), &context);
  return digest;
}

std::string HexOf(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

std::string Base64Of(std::span<const uint8_t> bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = bytes.size() - i;
    const uint32_t word = static_cast<uint32_t>(bytes[i]) << 16 |
                          (left > 1 ? static_cast<uint32_t>(bytes[i + 1]) << 8 : 0) |
                          (left > 2 ? bytes[i + 2] : 0u);
    out.push_back(kBase64[word >> 18]);
    out.push_back(kBase64[word >> 12 & 63]);
    out.push_back(left > 1 ? kBase64[word >> 6 & 63] : '=');
    out.push_back(left > 2 ? kBase64[word & 63] : '=');
  }
  return out;
}

std::optional<std::string> Base64Bytes(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const int padding = !last ? 0 : text.substr(i + 2, 2) == "==" ? 2 : text[i + 3] == '=' ? 1 : 0;
    uint32_t word = 0;
    for (size_t k = 0; k < 4; ++k) {
      const int value = k >= 4u - static_cast<size_t>(padding) ? 0 : Base64Value(text[i + k]);
      if (value < 0) return std::nullopt;
      word = word << 6 | static_cast<uint32_t>(value);
    }
    for (int k = 0; k < 3 - padding; ++k) out.push_back(static_cast<char>(word >> (16 - 8 * k) & 255));
  }
  const bool same = Base64Of(std::span(reinterpret_cast<const uint8_t*>(out.data()), out.size())) ==
                    text;  // bits behind the end
  return same ? std::optional(out) : std::nullopt;
}

std::string_view BytesAsText(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace overcap
