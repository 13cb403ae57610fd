// SPDX-License-Identifier: Apache-2.0
// Blocks from all lanes become packs, which threads of its own put while the lanes go on. Memory is bounded:
// one open pack of each kind and kPacksOnTheirWay.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/finished_pack.h"
#include "snapshot/repository/own_meta.h"

namespace overcap {

struct CompressedBlock {
  PackedBlock block;  // stored_size is not set yet
  std::shared_ptr<const std::string> stored;
  std::shared_ptr<OwnMetaBlock> meta;  // of meta chunks
};

class PackAssembly {
 public:
  static constexpr int kPacksOnTheirWay = 2;

  PackAssembly(const Repository& repository, OwnMeta* own_meta);
  // Waits for packs that are full; what stands in open ones is dropped.
  ~PackAssembly();

  // Waits while too many packs are on their way. After any failure all fail with that error.
  Result<void> Add(ChunkKind kind, CompressedBlock block);
  // Puts open packs too and waits for all.
  Result<void> Drain();

  void SetFailed(const Error& error);
  Result<void> Check() const;  // cheap

  // What was put so far.
  std::vector<IndexedPack> Packs() const;

 private:
  struct OpenPack {
    FinishedPack pack;
    bool begun = false;
  };

  bool Full(const OpenPack& open) const { return open.pack.bytes >= kPackTarget; }
  void Append(OpenPack* open, ChunkKind kind, CompressedBlock block);  // with mutex_
  void Send(OpenPack* open);                                           // with mutex_
  Result<void> Failure() const;                                        // with mutex_
  void Upload();

  const Repository& repository_;
  OwnMeta* own_meta_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable room_;
  std::condition_variable work_;
  Error error_;
  std::array<OpenPack, 2> open_;  // data, meta
  std::deque<FinishedPack> queue_;
  int on_their_way_ = 0;  // in queue_ or being put
  bool closing_ = false;
  std::vector<IndexedPack> packs_;
  std::vector<std::thread> threads_;
};

}  // namespace overcap
