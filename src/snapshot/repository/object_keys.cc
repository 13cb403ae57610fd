// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/object_keys.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::optional<Digest> ParseKey(std::string_view prefix, std::string_view key) {
  if (!key.starts_with(prefix)) return std::nullopt;
  return Digest::FromHex(key.substr(prefix.size()));
}

}  // namespace

std::string PackKey(const Digest& id) {
  const std::string hex = id.Hex();
  return StrCat(kPacksPrefix, std::string_view(hex).substr(0, 2), '/', hex);
}

std::optional<Digest> ParsePackKey(std::string_view key) {
  const size_t begin = kPacksPrefix.size() + 3;
  if (key.size() != begin + 64 || !key.starts_with(kPacksPrefix)) return std::nullopt;
  std::optional<Digest> id = Digest::FromHex(key.substr(begin));
  if (!id || PackKey(*id) != key) return std::nullopt;
  return id;
}

std::string IndexKey(const Digest& id) {
  return StrCat(kIndexPrefix, id.Hex());
}

std::optional<Digest> ParseIndexKey(std::string_view key) {
  return ParseKey(kIndexPrefix, key);
}

std::string CodeKey(const Digest& tree) {
  return StrCat(kCodePrefix, tree.Hex());
}

std::optional<Digest> ParseCodeKey(std::string_view key) {
  return ParseKey(kCodePrefix, key);
}

std::string BlobKey(const Digest& id) {
  return StrCat(kBlobsPrefix, id.Hex());
}

std::optional<Digest> ParseBlobKey(std::string_view key) {
  return ParseKey(kBlobsPrefix, key);
}

std::string WriterKey(std::string_view id) {
  return StrCat(kWritersPrefix, id);
}

std::string CondemnedKey(std::string_view id) {
  return StrCat(kCondemnedPrefix, id);
}

std::optional<std::string> ParsePresenceKey(std::string_view prefix, std::string_view key) {
  if (!key.starts_with(prefix) || key.size() != prefix.size() + 32) return std::nullopt;
  const std::string_view id = key.substr(prefix.size());
  if (id.find_first_not_of(kHexDigits) != std::string_view::npos) return std::nullopt;
  return std::string(id);
}

std::string NewPresenceId(Random& random) {
  std::string id;
  for (int word = 0; word < 2; ++word) {
    uint64_t bits = random.Next();
    for (int digit = 0; digit < 16; ++digit, bits >>= 4) id.push_back(kHexDigits[bits & 15]);
  }
  return id;
}

}  // namespace overcap
