// SPDX-License-Identifier: Apache-2.0
// Reads chunks back, each checked against its id.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/repository.h"

namespace overcap {

// Single chunks: trees, `cat`. Keeps the blocks read last (64 MiB at most). May be used from several threads.
class ChunkReader {
 public:
  ChunkReader(const Repository& repository, const ChunkIndex& index);
  ~ChunkReader();
  // kNotFound: no pack has it (the message names the chunk); kCorrupt: it is damaged (names pack and chunk).
  Result<std::string> Get(const Digest& id);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// For restores: reads a pack's blocks in order, each once, and hands out the chunks that are wanted.
struct WantedBlock {
  uint32_t block = 0;
  std::vector<uint32_t> chunks;  // numbers of the chunks in the block, ascending
};
struct BlockChunk {
  uint32_t block = 0;
  uint32_t chunk = 0;
  std::string_view bytes;        // empty when `error` is set
  const Error* error = nullptr;  // damaged: the chunk, or all of the block
};
// One per thread. `blocks` ascending. Neighbouring blocks are fetched together. A damaged block does not keep
// others from being read; the callback's own error ends it. An error of the store (not kCorrupt, kNotFound)
// ends it too.
class PackReader {
 public:
  // kByStore: what the store gives has been compared with its ids already, and is not hashed once more.
  enum class Proof { kHere, kByStore };
  PackReader(const Repository& repository, const ChunkIndex& index, Proof proof = Proof::kHere);
  ~PackReader();
  Result<void> Read(uint32_t pack, const std::vector<WantedBlock>& blocks,
                    const std::function<Result<void>(const BlockChunk&)>& on_chunk);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace overcap
