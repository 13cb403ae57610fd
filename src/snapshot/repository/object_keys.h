// SPDX-License-Identifier: Apache-2.0
// Names of the objects of a repository (docs/formats/snapshot.md). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "snapshot/sha256.h"
#include "sys/random.h"

namespace overcap {

inline constexpr std::string_view kPacksPrefix = "packs/";
inline constexpr std::string_view kIndexPrefix = "index/";
inline constexpr std::string_view kWritersPrefix = "writers/";
inline constexpr std::string_view kCondemnedPrefix = "condemned/";
inline constexpr std::string_view kCodePrefix = "code/";
inline constexpr std::string_view kBlobsPrefix = "blobs/";

std::string PackKey(const Digest& id);  // "packs/ab/<id>"
std::optional<Digest> ParsePackKey(std::string_view key);
std::string IndexKey(const Digest& id);
std::optional<Digest> ParseIndexKey(std::string_view key);
std::string CodeKey(const Digest& tree);
std::optional<Digest> ParseCodeKey(std::string_view key);
std::string BlobKey(const Digest& id);
std::optional<Digest> ParseBlobKey(std::string_view key);
std::string WriterKey(std::string_view id);
std::string CondemnedKey(std::string_view id);
// The id in a key of writers/ or condemned/; nullopt for anything else.
std::optional<std::string> ParsePresenceKey(std::string_view prefix, std::string_view key);
// 32 hex digits.
std::string NewPresenceId(Random& random);

}  // namespace overcap
