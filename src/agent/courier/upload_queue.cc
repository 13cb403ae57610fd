// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/upload_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sys/stat.h>
#include <vector>

namespace overcap {
namespace {

constexpr int64_t kBesideUs = 1'000'000;
constexpr int64_t kHurryUs = 5'000;
constexpr size_t kMostThreads = 4;

// What of many files is to be put now, by a few threads.
struct Pass {
  std::atomic<size_t> next = 0;
  std::atomic<bool> any = false;
  std::mutex mutex;  // guards error
  std::optional<Error> error;

  void Work(const std::vector<SegmentUpload*>& uploads, Store* store, int64_t now_us, bool hurry) {
    for (size_t i = next++; i < uploads.size(); i = next++) {
      const Result<bool> put = uploads[i]->Step(store, now_us, hurry);
      if (put && *put) any = true;
      if (put) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      error = put.error();
      next = uploads.size();  // the others would wait for the same
    }
  }
};

}  // namespace

UploadQueue::UploadQueue(Options options) : options_(std::move(options)), thread_([this] { Run(); }) {}

UploadQueue::~UploadQueue() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void UploadQueue::Add(const std::string& name, std::unique_ptr<SegmentUpload> upload) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++wanted_;
  items_.try_emplace(name, Item{std::move(upload)});
}

void UploadQueue::Done(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++wanted_;
  if (const auto found = items_.find(name); found != items_.end()) found->second.done = true;
}

UploadQueue::Rest UploadQueue::Drain(int64_t timeout_us) {
  std::unique_lock<std::mutex> lock(mutex_);
  ++hurry_;
  const int64_t before = rounds_;
  changed_.notify_all();
  // Two: the round that is under way may have looked at a file before its last line.
  const bool all = changed_.wait_for(lock, std::chrono::microseconds(timeout_us),
                                     [&] { return stop_ || rounds_ >= before + 2; });
  --hurry_;
  return all ? Rest{} : RestNow();
}

// As the files are now: the round that is under way may wait for a store that does not answer. The mutex is
// held.
UploadQueue::Rest UploadQueue::RestNow() const {
  Rest rest{0, rest_.why};
  for (const auto& [name, item] : items_) {
    struct stat about;
    if (stat(item.upload->path().c_str(), &about) == 0)
      rest.unsent += std::max<int64_t>(0, about.st_size - item.sent);
  }
  if (rest.why.empty()) rest.why = "the store does not answer";
  return rest;
}

void UploadQueue::Run() {
  while (true) {
    bool hurry;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stop_) return;
      hurry = hurry_ > 0;
    }
    const Result<bool> round = Round(hurry);
    NoteRound(round, hurry);
    if (!round) store_.reset();  // opened again: keys or the service may have changed
    if (!(round && *round)) Pace(hurry);
  }
}

// Without anything to do, or after a failure.
void UploadQueue::Pace(bool hurry) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool failed = !rest_.why.empty();
  const int64_t pause_us = failed ? 4 * options_.tick_us : hurry ? kHurryUs : options_.tick_us;
  const auto pause = std::chrono::microseconds(pause_us);
  changed_.wait_for(lock, pause, [&] { return stop_ || (!failed && !hurry && hurry_ > 0); });
}

Result<bool> UploadQueue::Round(bool hurry) {
  std::map<std::string, Item*> items;
  std::vector<std::string> finished;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [name, item] : items_) items.emplace(name, &item);
  }
  if (options_.backlog > 0) BoundBacklog(items);
  if (store_ == nullptr) {
    OC_TRY(opened, options_.open());
    store_ = std::move(opened);
  }
  std::vector<SegmentUpload*> uploads;
  for (const auto& [name, item] : items) uploads.push_back(item->upload.get());
  Pass pass;
  const int64_t now_us = clock_.MonotonicUs();
  std::vector<std::thread> threads;
  const size_t more = hurry || uploads.size() > 8 ? std::min(uploads.size(), kMostThreads) : 1;
  for (size_t i = 1; i < more; ++i)
    threads.emplace_back([&] { pass.Work(uploads, store_.get(), now_us, hurry); });
  pass.Work(uploads, store_.get(), now_us, hurry);
  for (std::thread& thread : threads) thread.join();
  if (pass.error) return Fail(*pass.error);
  if (options_.beside && (hurry || now_us - beside_us_ >= kBesideUs)) {
    beside_us_ = now_us;
    options_.beside(store_.get());
  }
  if (pass.any) return true;
  // Everything is there: what does not grow any more is looked at once again, and forgotten.
  for (const auto& [name, item] : items) {
    bool done;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done = item->done;
    }
    if (!done && !hurry) continue;
    if (item->upload->Unsent() > 0) continue;
    OC_TRY(good, item->upload->Check(store_.get()));
    if (done && good) finished.push_back(name);
    if (!good) return true;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& name : finished) items_.erase(name);
  return false;
}

void UploadQueue::BoundBacklog(const std::map<std::string, Item*>& items) {
  const int64_t each = options_.backlog / std::max<int64_t>(1, static_cast<int64_t>(items.size()));
  for (const auto& [name, item] : items) dropped_ += item->upload->DropBeyond(each);
}

void UploadQueue::NoteRound(const Result<bool>& round, bool hurry) {
  std::map<std::string, Item*> items;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [name, item] : items_) items.emplace(name, &item);
  }
  int64_t unsent = 0;
  for (const auto& [name, item] : items) unsent += item->upload->Unsent();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [name, item] : items) item->sent = item->upload->Sent();
  rest_.unsent = unsent;
  rest_.why = round ? "" : round.error().message;
  if (round && !*round && hurry && unsent == 0) ++rounds_;
  changed_.notify_all();
}

}  // namespace overcap
