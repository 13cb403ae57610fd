// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/background_sink.h"

#include <utility>

namespace overcap {
namespace {

constexpr size_t kPiece = 1 << 20, kMostPieces = 8;

}  // namespace

BackgroundSink::BackgroundSink(ByteSink& next) : next_(next), thread_([this] { Work(); }) {
  piece_.reserve(kPiece);
}

BackgroundSink::~BackgroundSink() {
  {
    const std::lock_guard lock(mutex_);
    drop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundSink::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return drop_ || last_ || !queue_.empty(); });
    if (drop_ || error_) break;
    const bool finish = queue_.empty();
    std::string piece;
    if (!finish) {
      piece = std::move(queue_.front());
      queue_.pop_front();
      changed_.notify_all();
    }
    lock.unlock();
    Result<void> result = finish ? next_.Finish() : next_.Write(piece);
    lock.lock();
    if (!result) error_ = std::move(result).error();
    if (finish || error_) break;
  }
  done_ = true;
  changed_.notify_all();
}

Result<void> BackgroundSink::Hand() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ || queue_.size() < kMostPieces; });
  if (error_) return Fail(*error_);
  queue_.push_back(std::exchange(piece_, {}));
  piece_.reserve(kPiece);
  changed_.notify_all();
  return {};
}

Result<void> BackgroundSink::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kPiece - piece_.size());
    piece_.append(part);
    bytes.remove_prefix(part.size());
    if (piece_.size() == kPiece) OC_TRY_VOID(Hand());
  }
  return {};
}

Result<void> BackgroundSink::Finish() {
  if (!piece_.empty()) OC_TRY_VOID(Hand());
  std::unique_lock lock(mutex_);
  last_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return done_; });
  if (error_) return Fail(*error_);
  return {};
}

}  // namespace overcap
