// SPDX-License-Identifier: Apache-2.0
// What a ChunkWriter and its lanes share.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/chunk_writer.h"
#include "snapshot/repository/claim_set.h"
#include "snapshot/repository/own_meta.h"
#include "snapshot/repository/pack_assembly.h"
#include "snapshot/repository/writer_presence.h"

namespace overcap {

struct ChunkWriter::State {
  State(const Repository& repository_in, std::unique_ptr<WriterPresence> presence_in,
        std::unordered_set<Digest> condemned)
      : repository(repository_in),
        presence(std::move(presence_in)),
        not_relied_on(std::move(condemned)),
        assembly(repository_in, &own_meta) {}

  // Loaded by whoever asks first; others wait. An error of it is one of the writer.
  Result<const ChunkIndex*> Index();
  Result<void> LoadIndex();  // with index_mutex

  const Repository& repository;
  std::unique_ptr<WriterPresence> presence;  // nullptr: the prune that we work for has one
  const std::unordered_set<Digest> not_relied_on;

  std::atomic<const ChunkIndex*> ready_index = nullptr;
  std::mutex index_mutex;  // guards the loading of what follows; read by all afterwards
  std::optional<ChunkIndex> index;
  ChunkIndex::LoadReport load_report;
  std::optional<ChunkReader> reader;

  ClaimSet claims;
  OwnMeta own_meta;
  std::atomic<int64_t> new_chunks = 0, new_bytes = 0;
  std::atomic<int> open_blocks = 0;  // of all lanes
  bool indexed = false;              // Finish wrote the index
  int64_t index_bytes = 0;
  PackAssembly assembly;  // last: its threads use the others
};

// The blocks of one thread.
struct ChunkWriter::Lane::State {
  explicit State(ChunkWriter::State* writer_in) : writer(writer_in) {}

  Result<void> Append(ChunkKind kind, const Digest& id, std::string_view bytes);
  Result<void> CloseData();
  Result<void> CloseMeta();
  Result<void> Send(ChunkKind kind, std::string_view raw, std::vector<PackedChunk> chunks,
                    std::shared_ptr<OwnMetaBlock> meta);

  ChunkWriter::State* writer;
  BlockCompressor compressor;
  std::string scratch;
  std::string data_raw;
  std::vector<PackedChunk> data_chunks;
  std::shared_ptr<OwnMetaBlock> meta_block;
  std::vector<PackedChunk> meta_chunks;
};

}  // namespace overcap
