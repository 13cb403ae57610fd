// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/md5.h"

#include <openssl/evp.h>

namespace overcap {

struct Md5::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Md5::Md5() : context_(std::make_unique<Context>()) {
  EVP_DigestInit_ex(context_->evp, EVP_md5(), nullptr);
}
Md5::Md5(Md5&&) noexcept = default;
Md5& Md5::operator=(Md5&&) noexcept = default;
Md5::~Md5() = default;

void Md5::Add(std::string_view bytes) {
  EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size());
}

std::string Md5::Bytes() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_->evp, digest, &size);
  return {reinterpret_cast<const char*>(digest), size};
}

std::string Md5::Hex() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : Bytes()) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string Md5Hex(std::string_view bytes) {
  Md5 md5;
  md5.Add(bytes);
  return md5.Hex();
}

}  // namespace overcap
