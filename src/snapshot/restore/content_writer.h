// SPDX-License-Identifier: Apache-2.0
// Writes the contents of all files that need it, pack after pack, on several threads.
#pragma once

#include <optional>
#include <vector>

#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/repository.h"
#include "snapshot/restore/chunk_uses.h"
#include "snapshot/restore/file_maker.h"
#include "snapshot/restore/large_files.h"

namespace overcap {

class ContentWriter {
 public:
  // `proven`: as RestoreRequest has it.
  ContentWriter(const Repository& repository, const ChunkIndex& index, const GetMeta& get, bool proven,
                RestoreScene* scene);

  // `entries` are files in the order of the tree, to be made whatever is there. Each block is read once,
  // unless there are more than kUsesAtOnce places to write to. Errors go to the ledger.
  void Write(const std::vector<uint32_t>& entries);

 private:
  static constexpr size_t kUsesAtOnce = 1'000'000;
  static constexpr int64_t kRunBytes = 2 << 20;

  // One large file whose parts are being collected.
  struct Collecting {
    uint32_t file;
    ContentCursor cursor;
  };

  void Collect(const std::vector<uint32_t>& entries);
  void CollectOne(uint32_t entry);
  // False when there are enough for now.
  bool CollectParts();
  void WriteUses();
  void WriteRun(const UseRun& run, PackReader* reader, FileMaker* maker);
  void WriteUse(const ChunkUse& use, const BlockChunk& chunk, FileMaker* maker);
  void FailUse(const ChunkUse& use, const Error& error, FileMaker* maker);

  const Repository& repository_;
  const ChunkIndex& index_;
  const GetMeta& get_;
  const PackReader::Proof proof_;
  RestoreScene& scene_;
  FileMaker maker_;  // of the calling thread, between the rounds
  LargeFiles large_;
  std::vector<ChunkUse> uses_;
  size_t next_ = 0;  // of the entries
  std::optional<Collecting> collecting_;
};

}  // namespace overcap
