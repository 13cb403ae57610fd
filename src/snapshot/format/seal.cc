// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/seal.h"

#include <cstring>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/text.h"
#include "snapshot/format/aes_gcm.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr std::string_view kSealed = "ocseal2\n", kPackUse = "overcap pack", kObjectUse = "overcap object";
constexpr size_t kSaltSize = 32;
constexpr int64_t kMostN = int64_t{1} << 22, kMostR = 32, kMostP = 16, kMostMemory = int64_t{1} << 30;
constexpr GcmNonce kZeroNonce{};

std::array<uint8_t, 32> RandomBytes32() {
  std::array<uint8_t, 32> bytes;
  KernelRandom random;
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t value = random.Next();
    std::memcpy(bytes.data() + i, &value, 8);
  }
  return bytes;
}

std::string_view AsText(const std::array<uint8_t, 32>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool AcceptableCost(int64_t n, int64_t r, int64_t p) {
  const bool power_of_two = n > 1 && (n & (n - 1)) == 0;
  return power_of_two && n <= kMostN && r >= 1 && r <= kMostR && p >= 1 && p <= kMostP &&
         128 * n * r <= kMostMemory;
}

// The key that protects the master key.
Result<SecretKey> KeyOfSecret(std::string_view secret, const EncryptionConfig& config) {
  if (secret.empty()) return Fail(ErrorCode::kUsage, "the passphrase is empty");
  if (!AcceptableCost(config.n, config.r, config.p))
    return Fail(ErrorCode::kUsage, StrCat("scrypt with n ", config.n, ", r ", config.r, ", p ", config.p,
                                          " is past the limits of what a repository may ask for"));
  std::array<uint8_t, 32> bytes;
  const uint64_t memory = static_cast<uint64_t>(kMostMemory + (64 << 20));
  const int ok =
      EVP_PBE_scrypt(secret.data(), secret.size(), reinterpret_cast<const unsigned char*>(config.salt.data()),
                     config.salt.size(), static_cast<uint64_t>(config.n), static_cast<uint64_t>(config.r),
                     static_cast<uint64_t>(config.p), memory, bytes.data(), bytes.size());
  const SecretKey key(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  if (ok != 1)
    return Fail(ErrorCode::kUnavailable, "cannot derive a key from the passphrase: not enough memory",
                StrCat("it takes ", 128 * config.n * config.r >> 20, " MiB: free some, then try again"));
  return key;
}

GcmNonce BlockNonce(uint64_t block) {
  GcmNonce nonce{};
  for (size_t i = 0; i < 8; ++i) nonce[i] = static_cast<uint8_t>(block >> (8 * i));
  if (block == PackSeal::kFooter) nonce.fill(0xff);
  return nonce;
}

tl::unexpected<Error> NotOpened(std::string_view what) {
  return Fail(ErrorCode::kCorrupt, StrCat(what, " is damaged or was sealed with another key"));
}

}  // namespace

SecretKey::~SecretKey() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

Result<NewEncryption> MakeEncryption(std::string_view secret, std::string_view repository_id,
                                     ScryptCost cost) {
  NewEncryption made;
  made.config = {cost.n, cost.r, cost.p, std::string(AsText(RandomBytes32())), ""};
  OC_TRY(key, KeyOfSecret(secret, made.config));
  std::array<uint8_t, 32> fresh = RandomBytes32();
  made.master = SecretKey(fresh);
  OPENSSL_cleanse(fresh.data(), fresh.size());
  const std::string nonce(AsText(RandomBytes32()).substr(0, std::tuple_size_v<GcmNonce>));
  made.config.master = nonce;
  OC_TRY_VOID(
      GcmSeal(key, NonceFrom(nonce), repository_id, AsText(made.master.bytes()), &made.config.master));
  return made;
}

Result<SecretKey> OpenEncryption(const EncryptionConfig& config, std::string_view secret,
                                 std::string_view repository_id) {
  constexpr size_t kNonceSize = std::tuple_size_v<GcmNonce>;
  if (config.salt.size() != kSaltSize || config.master.size() != kNonceSize + 32 + kGcmTagSize)
    return Fail(ErrorCode::kCorrupt, "the encrypted key of the repository has a wrong size");
  OC_TRY(key, KeyOfSecret(secret, config));
  const std::string_view master = config.master;
  std::string plain;
  OC_TRY(good, GcmOpen(key, NonceFrom(master), repository_id, master.substr(kNonceSize), &plain));
  if (!good)
    return Fail(ErrorCode::kDenied, "the passphrase or key file is wrong", "try again with the right one");
  std::array<uint8_t, 32> bytes;
  std::memcpy(bytes.data(), plain.data(), bytes.size());
  const SecretKey opened(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  OPENSSL_cleanse(plain.data(), plain.size());
  return opened;
}

PackSeal::PackSeal(const SecretKey& master, const std::array<uint8_t, 32>& salt, std::string_view head)
    : key_(HmacSha256(master, StrCat(kPackUse, AsText(salt)))), head_(head) {}

Result<void> PackSeal::Seal(uint64_t block, std::string_view plain, std::string* out) const {
  return GcmSeal(key_, BlockNonce(block), head_, plain, out);
}

Result<std::string> PackSeal::Open(uint64_t block, std::string_view sealed) const {
  std::string plain;
  OC_TRY(good, GcmOpen(key_, BlockNonce(block), head_, sealed, &plain));
  if (!good)
    return NotOpened(block == kFooter ? "the footer of a pack" : StrCat("block ", block, " of a pack"));
  return plain;
}

Result<std::string> SealObject(const SecretKey& master, std::string_view repository_id, std::string_view kind,
                               std::string_view plain) {
  const std::array<uint8_t, 32> salt = RandomBytes32();
  std::string sealed = StrCat(kSealed, AsText(salt));
  sealed.reserve(sealed.size() + plain.size() + kGcmTagSize);
  const SecretKey key = HmacSha256(master, StrCat(kObjectUse, AsText(salt)));
  OC_TRY_VOID(GcmSeal(key, kZeroNonce, StrCat(repository_id, kind), plain, &sealed));
  return sealed;
}

Result<std::string> OpenObject(const SecretKey& master, std::string_view repository_id, std::string_view kind,
                               std::string_view sealed) {
  const std::string what = StrCat("an object of '", kind, "/'");
  if (!sealed.starts_with(kSealed) || sealed.size() < kSealed.size() + kSaltSize) return NotOpened(what);
  const SecretKey key = HmacSha256(master, StrCat(kObjectUse, sealed.substr(kSealed.size(), kSaltSize)));
  std::string plain;
  OC_TRY(good, GcmOpen(key, kZeroNonce, StrCat(repository_id, kind),
                       sealed.substr(kSealed.size() + kSaltSize), &plain));
  if (!good) return NotOpened(what);
  return plain;
}

}  // namespace overcap
