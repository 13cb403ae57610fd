// SPDX-License-Identifier: Apache-2.0
// Encryption of a repository (docs/formats/snapshot.md, "Sealed objects" and "Packs"). Keys are wiped when
// they go.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "snapshot/format/snapshot_record.h"

namespace overcap {

// A key of 32 bytes.
class SecretKey {
 public:
  SecretKey() = default;
  explicit SecretKey(const std::array<uint8_t, 32>& bytes) : bytes_(bytes) {}
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();
  const std::array<uint8_t, 32>& bytes() const { return bytes_; }

 private:
  std::array<uint8_t, 32> bytes_{};
};

struct ScryptCost {
  int64_t n = 65'536, r = 8, p = 1;  // 64 MiB
};

// A fresh master key and what config says of it.
struct NewEncryption {
  SecretKey master;
  EncryptionConfig config;
};
Result<NewEncryption> MakeEncryption(std::string_view secret, std::string_view repository_id,
                                     ScryptCost cost = {});
// kDenied for a wrong secret, kUsage for costs past the limits.
Result<SecretKey> OpenEncryption(const EncryptionConfig& config, std::string_view secret,
                                 std::string_view repository_id);

// AES-256-GCM of one pack: blocks and footer.
class PackSeal {
 public:
  PackSeal(const SecretKey& master, const std::array<uint8_t, 32>& salt, std::string_view head);
  static constexpr uint64_t kFooter = UINT64_MAX;
  static constexpr size_t kOverhead = 16;
  // Appends ciphertext and tag.
  Result<void> Seal(uint64_t block, std::string_view plain, std::string* out) const;
  Result<std::string> Open(uint64_t block, std::string_view sealed) const;  // kCorrupt

 private:
  SecretKey key_;
  std::string head_;
};

// Objects of index/ and snapshots/; `kind` is "index" or "snapshots".
Result<std::string> SealObject(const SecretKey& master, std::string_view repository_id, std::string_view kind,
                               std::string_view plain);
Result<std::string> OpenObject(const SecretKey& master, std::string_view repository_id, std::string_view kind,
                               std::string_view sealed);  // kCorrupt

}  // namespace overcap
