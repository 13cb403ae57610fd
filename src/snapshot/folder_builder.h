// SPDX-License-Identifier: Apache-2.0
// Fills one new folder with captured code, in the order of the packs: each block is read and decoded once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "snapshot/code_tree.h"
#include "snapshot/restore/chunk_uses.h"
#include "sys/fd.h"

namespace overcap {

class FolderBuilder {
 public:
  // `cancelled` may be empty.
  FolderBuilder(const CodeTree& tree, std::function<bool()> cancelled)
      : tree_(tree), cancelled_(std::move(cancelled)) {}

  // Makes the folder `path`; removes it again when that fails. kCorrupt with path and chunk when one is
  // missing or damaged; the tree then has it noted.
  Result<void> Build(const std::string& path);

  int64_t files() const { return files_; }
  int64_t bytes() const { return bytes_; }

 private:
  Result<void> Fill();
  Result<void> BeginEntry(uint32_t number);
  Result<void> BeginFile(uint32_t number);
  Result<void> Want(uint32_t number, const Digest& chunk, int64_t length, int64_t offset);
  Result<void> WriteContents();
  Result<void> WriteRun(const UseRun& run, PackReader* reader);
  Result<void> WriteChunk(const ChunkUse& use, const BlockChunk& chunk);
  Result<void> CheckCancelled() const;
  Fd Open(const CodeEntry& entry, int flags) const;
  tl::unexpected<Error> Damaged(const CodeEntry& entry, const Digest& chunk, std::string_view how) const;
  tl::unexpected<Error> WriteError(const CodeEntry& entry) const;

  const CodeTree& tree_;
  const std::function<bool()> cancelled_;
  const std::thread::id caller_ = std::this_thread::get_id();
  std::string path_;
  Fd fd_;
  std::vector<CodeEntry> entries_;
  std::vector<ChunkUse> uses_;
  int64_t files_ = 0, bytes_ = 0;
};

}  // namespace overcap
