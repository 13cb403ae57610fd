// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/writer_presence.h"

#include <chrono>

#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/process_mark.h"

namespace overcap {

WriterPresence::WriterPresence(const Repository& repository, bool prune)
    : repository_(repository), id_(NewPresenceId(repository.random())) {
  record_.process = OwnProcessMark();
  record_.began_us = repository.clock().WallUs();
  record_.prune = prune;
}

Result<std::unique_ptr<WriterPresence>> WriterPresence::Register(const Repository& repository, bool prune) {
  std::unique_ptr<WriterPresence> presence(new WriterPresence(repository, prune));
  const std::unique_lock lock(presence->mutex_);
  OC_TRY_VOID(presence->Put());
  OC_TRY(condemned, ListCondemned(repository));
  if (!prune) OC_TRY_VOID(AllReadable(condemned));
  presence->record_.knows = condemned.Ids();
  if (!condemned.objects.empty()) OC_TRY_VOID(presence->Put());
  presence->condemned_ = std::move(condemned);
  presence->thread_ = std::thread([raw = presence.get()] { raw->Run(); });
  return presence;
}

WriterPresence::~WriterPresence() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  (void)repository_.store().Remove(WriterKey(id_));  // a prune finds it without a beat otherwise
}

std::string WriterPresence::id() const {
  const std::lock_guard lock(mutex_);
  return id_;
}

Result<void> WriterPresence::Put() {
  OC_TRY_VOID(repository_.store().Put(WriterKey(id_), EncodeWriterRecord(record_)));
  NoteTime();
  return {};
}

void WriterPresence::NoteTime() {
  wall_us_ = repository_.clock().WallUs();
  monotonic_us_ = repository_.clock().MonotonicUs();
}

// The wall clock goes on while a machine sleeps, the other one is never set.
bool WriterPresence::TooLate() const {
  return repository_.clock().WallUs() - wall_us_ > kBeatLateUs ||
         repository_.clock().MonotonicUs() - monotonic_us_ > kBeatLateUs;
}

void WriterPresence::Beat() {
  if (lost_) return;
  const Result<StoredObjectInfo> there = repository_.store().Stat(WriterKey(id_));
  if (!there && there.error().code == ErrorCode::kNotFound) lost_ = true;
  if (!there) return;  // tried again at the next beat
  ++record_.beat;
  if (!repository_.store().Put(WriterKey(id_), EncodeWriterRecord(record_))) return;
  if (TooLate()) lost_ = true;
  NoteTime();
}

void WriterPresence::BeatIfDue() {
  const std::lock_guard lock(mutex_);
  if (repository_.clock().MonotonicUs() - monotonic_us_ >= kBeatEveryUs) Beat();
}

Result<bool> WriterPresence::StillThere() {
  const std::lock_guard lock(mutex_);
  if (lost_ || TooLate()) return false;
  const Result<StoredObjectInfo> there = repository_.store().Stat(WriterKey(id_));
  if (!there && there.error().code != ErrorCode::kNotFound) return Fail(there.error());
  if (!there) lost_ = true;
  return !lost_;
}

Result<void> WriterPresence::RegisterAgain() {
  const std::lock_guard lock(mutex_);
  (void)repository_.store().Remove(WriterKey(id_));
  id_ = NewPresenceId(repository_.random());
  record_.beat = 0;
  record_.knows.clear();
  OC_TRY_VOID(Put());
  lost_ = false;
  return {};
}

void WriterPresence::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    wake_.wait_for(lock, std::chrono::microseconds(kBeatEveryUs), [this] { return stop_; });
    if (!stop_) Beat();
  }
}

}  // namespace overcap
