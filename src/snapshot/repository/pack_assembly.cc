// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/pack_assembly.h"

#include <cstring>

#include "sys/large_heap.h"

namespace overcap {
namespace {

constexpr size_t kUploaders = 2;
constexpr size_t kFooterPerChunk = 34;  // bytes, about: a pack of tiny chunks is mostly footer

std::array<uint8_t, 32> NewSalt(Random& random) {
  std::array<uint8_t, 32> salt;
  for (size_t at = 0; at < salt.size(); at += 8) {
    const uint64_t bits = random.Next();
    std::memcpy(salt.data() + at, &bits, sizeof bits);
  }
  return salt;
}

}  // namespace

PackAssembly::PackAssembly(const Repository& repository, OwnMeta* own_meta)
    : repository_(repository), own_meta_(own_meta) {
  GiveBackLargeBlocks();
}

PackAssembly::~PackAssembly() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Result<void> PackAssembly::Add(ChunkKind kind, CompressedBlock block) {
  std::unique_lock lock(mutex_);
  OpenPack& open = open_[kind == ChunkKind::kData ? 0 : 1];
  room_.wait(lock, [&] { return failed_ || !Full(open); });
  OC_TRY_VOID(Failure());
  Append(&open, kind, std::move(block));
  if (!Full(open)) return {};
  room_.wait(lock, [&] { return failed_ || on_their_way_ < kPacksOnTheirWay; });
  OC_TRY_VOID(Failure());
  Send(&open);
  return {};
}

void PackAssembly::Append(OpenPack* open, ChunkKind kind, CompressedBlock block) {
  const bool encrypted = repository_.master().has_value();
  FinishedPack& pack = open->pack;
  if (!open->begun) {
    open->begun = true;
    pack.head = {kind, encrypted, NewSalt(repository_.random())};
    pack.bytes = kPackHeadSize + kPackTailSize;
  }
  const size_t size = block.stored->size() + (encrypted ? PackSeal::kOverhead : 0);
  block.block.stored_size = static_cast<uint32_t>(size);
  pack.bytes += static_cast<int64_t>(size + kFooterPerChunk * block.block.chunks.size());
  pack.blocks.push_back(std::move(block.block));
  pack.stored.push_back(std::move(block.stored));
  if (block.meta) pack.meta.push_back(std::move(block.meta));
}

void PackAssembly::Send(OpenPack* open) {
  queue_.push_back(std::move(open->pack));
  *open = OpenPack();
  ++on_their_way_;
  if (threads_.size() < kUploaders && threads_.size() < static_cast<size_t>(on_their_way_)) {
    threads_.emplace_back([this] { Upload(); });
  }
  work_.notify_one();
  room_.notify_all();
}

Result<void> PackAssembly::Drain() {
  std::unique_lock lock(mutex_);
  OC_TRY_VOID(Failure());
  for (OpenPack& open : open_) {
    if (open.begun) Send(&open);
  }
  room_.wait(lock, [&] { return failed_ || on_their_way_ == 0; });
  return Failure();
}

void PackAssembly::SetFailed(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!failed_) error_ = error;
  failed_ = true;
  room_.notify_all();
}

Result<void> PackAssembly::Failure() const {
  if (failed_) return Fail(error_);
  return {};
}

Result<void> PackAssembly::Check() const {
  if (!failed_) return {};
  const std::lock_guard lock(mutex_);
  return Failure();
}

std::vector<IndexedPack> PackAssembly::Packs() const {
  const std::lock_guard lock(mutex_);
  return packs_;
}

void PackAssembly::Upload() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    FinishedPack pack = std::move(queue_.front());
    queue_.pop_front();
    if (failed_) continue;
    lock.unlock();
    Result<IndexedPack> put = PutPack(repository_, &pack);
    if (put && !pack.meta.empty()) own_meta_->Stored(pack.meta, put->id, pack.blocks);
    if (!put) SetFailed(put.error());
    pack = FinishedPack();  // frees it before the next may come
    lock.lock();
    if (put) packs_.push_back(*std::move(put));
    --on_their_way_;
    room_.notify_all();
  }
}

}  // namespace overcap
