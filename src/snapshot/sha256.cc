// SPDX-License-Identifier: Apache-2.0
// The plain functions instead of EVP: the same accelerated code, but EVP's first use sets up OpenSSL's
// providers, which costs 0.5 to 0.8 ms in every short command.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "snapshot/sha256.h"

#include <new>
#include <openssl/sha.h>

namespace overcap {
namespace {

SHA256_CTX* Context(std::array<std::byte, 128>& state) {
  static_assert(sizeof(SHA256_CTX) <= 128);
  return std::launder(reinterpret_cast<SHA256_CTX*>(state.data()));
}

int HexValue(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

std::string Digest::Hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex(64, '0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    hex[2 * i] = kDigits[bytes[i] >> 4];
    hex[2 * i + 1] = kDigits[bytes[i] & 15];
  }
  return hex;
}

std::optional<Digest> Digest::FromHex(std::string_view hex) {
  if (hex.size() != 64) return std::nullopt;
  Digest digest;
  for (size_t i = 0; i < 32; ++i) {
    const int high = HexValue(hex[2 * i]);
    const int low = HexValue(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest.bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return digest;
}

Sha256::Sha256() {
  SHA256_Init(new (state_.data()) SHA256_CTX);
}

void Sha256::Update(const void* data, size_t size) {
  SHA256_Update(Context(state_), data, size);
}

Digest Sha256::Finish() {
  Digest digest;
  SHA256_Final(digest.bytes.data(), Context(state_));
  return digest;
}

Digest Sha256Of(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes.data(), bytes.size());
  return hash.Finish();
}

}  // namespace overcap
