// SPDX-License-Identifier: Apache-2.0
// SHA-256, the name of everything in the store.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace overcap {

struct Digest {
  std::array<uint8_t, 32> bytes{};

  auto operator<=>(const Digest&) const = default;
  std::string Hex() const;                                     // 64 lower-case digits
  static std::optional<Digest> FromHex(std::string_view hex);  // exactly what Hex() gives, else nullopt
};

// The hash of what was given piece by piece. Finish() once.
class Sha256 {
 public:
  Sha256();
  void Update(const void* data, size_t size);
  Digest Finish();

 private:
  alignas(8) std::array<std::byte, 128> state_;
};

Digest Sha256Of(std::string_view bytes);

}  // namespace overcap

template <>
struct std::hash<overcap::Digest> {
  size_t operator()(const overcap::Digest& digest) const {
    size_t value;
    std::memcpy(&value, digest.bytes.data(), sizeof value);
    return value;
  }
};
