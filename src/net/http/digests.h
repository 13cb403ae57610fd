// SPDX-License-Identifier: Apache-2.0
// What services on the web sign and check with.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace overcap {

using Sha256Bytes = std::array<uint8_t, 32>;

// Of the pieces one after the other.
Sha256Bytes Sha256OfPieces(std::span<const std::string_view> pieces);
Sha256Bytes Sha256OfText(std::string_view text);

std::array<uint8_t, 16> Md5OfPieces(std::span<const std::string_view> pieces);

std::string HexOf(std::span<const uint8_t> bytes);  // lower case
std::string Base64Of(std::span<const uint8_t> bytes);
// Only what Base64Of could have given, else nullopt.
std::optional<std::string> Base64Bytes(std::string_view text);

// A view of an array of bytes as text, for HmacSha256 (net/handshake.h) of what another one gave.
std::string_view BytesAsText(std::span<const uint8_t> bytes);

}  // namespace overcap
