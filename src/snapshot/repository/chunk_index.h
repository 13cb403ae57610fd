// SPDX-License-Identifier: Apache-2.0
// Where each chunk is: all packs of a repository in memory, about 56 bytes per chunk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "snapshot/format/pack_format.h"
#include "snapshot/repository/repository.h"

namespace overcap {

// A block that holds a chunk, and where in it.
struct ChunkPlace {
  uint32_t pack = 0;    // number in ChunkIndex
  uint32_t block = 0;   // number in the pack
  uint32_t chunk = 0;   // number in the block, as WantedBlock names it
  uint32_t offset = 0;  // in the raw block
  uint32_t size = 0;
};

struct BlockPlace {
  int64_t offset = 0;  // in the pack
  uint32_t stored_size = 0;
  uint32_t raw_size = 0;
  uint32_t check = 0;  // CRC-32C of the stored bytes
  BlockCodec codec = BlockCodec::kStored;
};

struct KnownPack {
  Digest id;
  ChunkKind kind = ChunkKind::kData;
  int64_t size = 0;
  int64_t stored_footer_size = 0;
  // Named by a condemned/ object, or not of the size that it should have: readers may use it, writers count
  // its chunks as missing.
  bool condemned = false;
  std::vector<BlockPlace> blocks;
};

class ChunkIndex {
 public:
  struct LoadOptions {
    bool ignore_indexes = false;  // read every pack's footer: rebuild
    std::unordered_set<Digest> also_condemned;
  };
  struct LoadReport {
    int64_t packs = 0;
    int64_t index_objects = 0;
    int64_t footers_read = 0;             // packs that no index named
    std::vector<std::string> damage;      // packs and indexes that could not be read, one line each
    std::vector<Digest> missing_packs;    // that an index names and that are not there
    std::vector<std::string> index_keys;  // damaged ones too
    std::vector<Digest> unindexed_packs;  // those whose footers were read
  };
  // condemned/, packs/, index/ in this order; then the footers of packs that no index names. Damage of one
  // pack never hides another.
  static Result<ChunkIndex> Load(const Repository& repository, LoadReport* report = nullptr) {
    return Load(repository, LoadOptions{}, report);
  }
  static Result<ChunkIndex> Load(const Repository& repository, const LoadOptions& options,
                                 LoadReport* report);

  ChunkIndex();
  ~ChunkIndex();
  ChunkIndex(ChunkIndex&&) noexcept;
  ChunkIndex& operator=(ChunkIndex&&) noexcept;

  // Any place of the chunk; one in a pack that is not condemned when there is one.
  std::optional<ChunkPlace> Find(const Digest& id) const;
  // For writers: whether it is in a pack that is not condemned.
  bool HasForWriters(const Digest& id) const;
  const KnownPack& pack(uint32_t number) const;
  uint32_t pack_count() const;
  int64_t chunk_count() const;
  // Every place of every chunk, pack by pack, block by block; a chunk that is in two packs comes twice.
  void ForEach(const std::function<void(const Digest& id, const ChunkPlace& place)>& visit) const;
  // The chunks of one block in order.
  void ForEachInBlock(uint32_t pack, uint32_t block,
                      const std::function<void(const Digest& id, const ChunkPlace& place)>& visit) const;
  // The blocks of a pack as its footer has them.
  std::vector<PackedBlock> Footer(uint32_t pack) const;
  void Reserve(size_t chunks);
  // Adds a pack that was just written, or read.
  Result<void> AddPack(const Digest& id, int64_t size, int64_t stored_footer_size, ChunkKind kind,
                       const std::vector<PackedBlock>& blocks, bool condemned);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace overcap
