// SPDX-License-Identifier: Apache-2.0
// Puts new chunks into a repository: blocks, packs, uploads beside the work of the callers, with bounded
// memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/result.h"
#include "snapshot/format/pack_format.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/repository.h"

namespace overcap {

struct AddedChunk {
  Digest id;
  bool is_new = false;  // nobody had it, this writer neither
};

struct WriterTotals {
  int64_t new_chunks = 0;
  int64_t new_bytes = 0;     // raw
  int64_t stored_bytes = 0;  // of packs and index that were put
  int64_t packs = 0;
};

// One per backup. Registers in writers/ and keeps its beat while it lives; the destructor removes that.
class ChunkWriter {
 public:
  // Registers, lists condemned/; the index is loaded at the first Add of a chunk (a backup of an unchanged
  // folder never needs it).
  static Result<std::unique_ptr<ChunkWriter>> Start(const Repository& repository);
  // For a prune, which has a presence of its own: chunks in the packs `leave` count as missing.
  static std::unique_ptr<ChunkWriter> StartForPrune(const Repository& repository,
                                                    std::unordered_set<Digest> leave);
  ~ChunkWriter();

  // One per thread: its small chunks share blocks, it keeps the compressor of that thread. Not shared between
  // threads.
  class Lane {
   public:
    ~Lane();
    // Hashes, and keeps unless the repository or another lane has it. Large chunks are compressed at once,
    // small ones when their block is full. Waits while too many packs are on their way. After an error of any
    // lane all fail.
    Result<AddedChunk> Add(ChunkKind kind, std::string_view bytes);
    // Sends what stands in open blocks. Call it at the end of the thread's work.
    Result<void> Flush();

   private:
    friend class ChunkWriter;
    struct State;
    explicit Lane(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  std::unique_ptr<Lane> NewLane();

  // Whether the repository has the chunk in a pack that stays; it then counts as relied on. For contents that
  // a backup knows from its cache and has not read. From any thread.
  Result<bool> Has(const Digest& id);
  // Packs that an index names and that are not there: lost, or just being put by another writer.
  Result<std::vector<Digest>> MissingPacks();
  // Meta chunks of this repository, those of this writer included also before they are put.
  Result<std::string> GetMeta(const Digest& id);

  // All lanes are flushed. When it returns all packs and their index are durable.
  Result<WriterTotals> Finish();
  // Finish, then makes sure that nothing it relied on was pruned, then puts the snapshot with the totals of
  // this writer as new_bytes and stored_bytes. kConflict: a prune took, or is about to take, what a cache or
  // an earlier snapshot promised: try again with a new writer, and Add or ask Has() for everything. Contents
  // taken over without Add or Has must be in a snapshot that was listed after Start.
  Result<NamedSnapshot> Commit(SnapshotRecord record);
  // The same for captured code: what keeps the tree is put under code/ (snapshot/repository/code_pin.h).
  Result<WriterTotals> Pin(const Digest& tree);

 private:
  struct State;
  // `put` makes what keeps the tree, `take_back` removes it again.
  Result<void> Publish(const Digest& tree, const std::function<Result<void>()>& put,
                       const std::function<Result<void>()>& take_back);
  Result<std::vector<IndexedPack>> PacksOf(const Digest& tree);
  explicit ChunkWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace overcap
