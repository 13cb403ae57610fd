// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/import_chunks.h"

#include <algorithm>

namespace overcap {
namespace {

constexpr size_t kQueuedMost = 24 << 20;

}  // namespace

ImportChunks::ImportChunks(ChunkWriter& writer, const ChunkSizes& sizes, int threads)
    : writer_(writer), sizes_(sizes) {
  for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { Work(); });
}

ImportChunks::~ImportChunks() {
  (void)Finish();
}

void ImportChunks::BeginRun(int64_t length) {
  run_left_ = length;
  segment_left_ = std::min(length, sizes_.segment);
}

void ImportChunks::Hole(int64_t length) {
  parts_.push_back({ContentPart::Kind::kHole, length, {}});
}

Result<void> ImportChunks::Data(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto room = static_cast<size_t>(segment_left_) - buffer_.size();
    const std::string_view piece = bytes.substr(0, std::min(room, static_cast<size_t>(sizes_.max)));
    buffer_.append(piece);
    bytes.remove_prefix(piece.size());
    OC_TRY_VOID(Cut());
  }
  return {};
}

// Chunks whose end is known: as long as a whole one of the largest size, or all of the segment, is there.
Result<void> ImportChunks::Cut() {
  size_t used = 0;
  while (used < buffer_.size()) {
    const auto have = static_cast<int64_t>(buffer_.size() - used);
    if (have < sizes_.max && have < segment_left_) break;
    const std::string_view rest(buffer_.data() + used, static_cast<size_t>(std::min(have, sizes_.max)));
    const int64_t length = NextChunk(rest, sizes_);
    OC_TRY_VOID(Hand(std::string(rest.substr(0, static_cast<size_t>(length)))));
    used += static_cast<size_t>(length);
    run_left_ -= length;
    segment_left_ -= length;
    if (segment_left_ == 0) segment_left_ = std::min(run_left_, sizes_.segment);
  }
  buffer_.erase(0, used);
  return {};
}

Result<void> ImportChunks::Hand(std::string bytes) {
  parts_.push_back({ContentPart::Kind::kChunk, static_cast<int64_t>(bytes.size()), {}});
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || queued_bytes_ < kQueuedMost; });
  if (error_) return Fail(*error_);
  queued_bytes_ += bytes.size();
  queue_.push_back({std::move(bytes), &parts_.back()});
  lock.unlock();
  changed_.notify_all();
  return {};
}

void ImportChunks::Work() {
  const auto lane = writer_.NewLane();
  std::unique_lock lock(mutex_);
  const auto fail = [&](Error error) {
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  };
  while (true) {
    changed_.wait(lock, [&] { return error_ || last_ || !queue_.empty(); });
    if (error_ || queue_.empty()) break;
    const Task task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    auto added = lane->Add(ChunkKind::kData, task.bytes);
    if (added) task.part->id = added->id;
    lock.lock();
    queued_bytes_ -= task.bytes.size();
    changed_.notify_all();
    if (!added) return fail(added.error());
  }
  lock.unlock();
  auto flushed = lane->Flush();
  lock.lock();
  if (!flushed) fail(flushed.error());
}

Result<void> ImportChunks::Finish() {
  {
    const std::lock_guard lock(mutex_);
    last_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) {
    if (worker.joinable()) worker.join();
  }
  if (error_) return Fail(*error_);
  return {};
}

}  // namespace overcap
