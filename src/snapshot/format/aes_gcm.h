// SPDX-License-Identifier: Apache-2.0
// AES-256-GCM and HMAC-SHA256, as OpenSSL has them. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "snapshot/format/seal.h"

namespace overcap {

using GcmNonce = std::array<uint8_t, 12>;
constexpr size_t kGcmTagSize = 16;

// The first 12 of at least so many bytes.
GcmNonce NonceFrom(std::string_view bytes);

// Appends ciphertext and tag. A nonce may be used once with a key.
Result<void> GcmSeal(const SecretKey& key, const GcmNonce& nonce, std::string_view also_authentic,
                     std::string_view plain, std::string* out);
// Sets `plain`, and whether it is authentic; nothing of it is given out when it is not.
Result<bool> GcmOpen(const SecretKey& key, const GcmNonce& nonce, std::string_view also_authentic,
                     std::string_view sealed, std::string* plain);

SecretKey HmacSha256(const SecretKey& key, std::string_view text);

}  // namespace overcap
