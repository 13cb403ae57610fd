// SPDX-License-Identifier: Apache-2.0
// What keeps the tree of captured code alive: code/<tree> (docs/formats/snapshot.md, "Captured code").
// ChunkWriter::Pin makes one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/format/pack_format.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/repository.h"

namespace overcap {

struct CodePin {
  Digest tree;
  int64_t size = 0;
  int64_t used_us = 0;  // when it was put or last used, by the store's clock
};

Result<std::vector<CodePin>> ListCodePins(const Repository& repository);

// The packs of a pin, with their footers. kCorrupt for bytes that are no pin.
std::string EncodeCodePin(std::vector<IndexedPack> packs);
Result<std::vector<IndexedPack>> DecodeCodePin(std::string_view bytes);

// An index of the packs alone that the pin of the tree names; some of them may be gone. kNotFound without a
// pin, kCorrupt when it is damaged: it keeps its tree all the same, ChunkIndex::Load finds it.
Result<ChunkIndex> LoadPinnedIndex(const Repository& repository, const Digest& tree);

}  // namespace overcap
