// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/aes_gcm.h"

#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace overcap {
namespace {

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* Bytes(std::string* text, size_t offset) {
  return reinterpret_cast<unsigned char*>(text->data()) + offset;
}

tl::unexpected<Error> Broken() {
  return Fail(ErrorCode::kInternal, "OpenSSL cannot do AES-256-GCM here");
}

bool Fits(std::string_view text) {
  return text.size() <= INT_MAX - kGcmTagSize;
}

// Ready for the text, or empty.
Context Begin(const SecretKey& key, const GcmNonce& nonce, std::string_view also_authentic, int encrypt) {
  Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int size = 0;
  const bool ready = context &&
                     EVP_CipherInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.bytes().data(),
                                       nonce.data(), encrypt) == 1 &&
                     EVP_CipherUpdate(context.get(), nullptr, &size, Bytes(also_authentic),
                                      static_cast<int>(also_authentic.size())) == 1;
  if (!ready) context.reset();
  return context;
}

}  // namespace

GcmNonce NonceFrom(std::string_view bytes) {
  GcmNonce nonce;
  std::memcpy(nonce.data(), bytes.data(), nonce.size());
  return nonce;
}

Result<void> GcmSeal(const SecretKey& key, const GcmNonce& nonce, std::string_view also_authentic,
                     std::string_view plain, std::string* out) {
  const Context context = Begin(key, nonce, also_authentic, 1);
  if (!context || !Fits(plain)) return Broken();
  const size_t begin = out->size();
  out->resize(begin + plain.size() + kGcmTagSize);
  int size = 0, rest = 0;
  const bool done =
      EVP_CipherUpdate(context.get(), Bytes(out, begin), &size, Bytes(plain),
                       static_cast<int>(plain.size())) == 1 &&
      EVP_CipherFinal_ex(context.get(), Bytes(out, begin + static_cast<size_t>(size)), &rest) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kGcmTagSize,
                          Bytes(out, begin + plain.size())) == 1;
  if (done) return {};
  out->resize(begin);
  return Broken();
}

Result<bool> GcmOpen(const SecretKey& key, const GcmNonce& nonce, std::string_view also_authentic,
                     std::string_view sealed, std::string* plain) {
  plain->clear();
  if (sealed.size() < kGcmTagSize || !Fits(sealed)) return false;
  const Context context = Begin(key, nonce, also_authentic, 0);
  if (!context) return Broken();
  const std::string_view text = sealed.substr(0, sealed.size() - kGcmTagSize);
  std::string tag(sealed.substr(text.size()));
  plain->resize(text.size());
  int size = 0, rest = 0;
  const bool authentic =
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kGcmTagSize, tag.data()) == 1 &&
      EVP_CipherUpdate(context.get(), Bytes(plain, 0), &size, Bytes(text), static_cast<int>(text.size())) ==
          1 &&
      EVP_CipherFinal_ex(context.get(), Bytes(plain, static_cast<size_t>(size)), &rest) == 1;
  if (!authentic) {
    OPENSSL_cleanse(plain->data(), plain->size());
    plain->clear();
  }
  return authentic;
}

SecretKey HmacSha256(const SecretKey& key, std::string_view text) {
  std::array<uint8_t, 32> bytes{};
  unsigned size = 0;
  // Cannot fail: SHA-256 is always there. A key of zeros must never come out of it silently.
  if (HMAC(EVP_sha256(), key.bytes().data(), static_cast<int>(key.bytes().size()), Bytes(text), text.size(),
           bytes.data(), &size) == nullptr)
    std::abort();
  const SecretKey made(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return made;
}

}  // namespace overcap
