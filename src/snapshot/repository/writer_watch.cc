// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/writer_watch.h"

#include <algorithm>
#include <ctime>

#include "base/text.h"
#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/process_mark.h"
#include "snapshot/repository/prune_plan.h"

namespace overcap {
namespace {

constexpr int64_t kWriterMost = 1'048'576;  // bytes; a longer one counts as damaged

std::string LocalMinute(int64_t wall_us) {
  const std::time_t seconds = static_cast<std::time_t>(wall_us / 1'000'000);
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local));
}

}  // namespace

WriterWatch::WriterWatch(const Repository& repository, std::string own_id, int64_t dead_after_us)
    : repository_(&repository), own_id_(std::move(own_id)), dead_after_us_(dead_after_us) {}

Result<WriterWatch> WriterWatch::List(const Repository& repository, std::string own_id,
                                      int64_t dead_after_us) {
  WriterWatch watch(repository, std::move(own_id), dead_after_us);
  OC_TRY(found, repository.store().ListAll(std::string(kWritersPrefix)));
  for (const StoredObjectInfo& info : found) {
    const std::optional<std::string> id = ParsePresenceKey(kWritersPrefix, info.key);
    if (id && *id != watch.own_id_) watch.writers_.push_back({.id = *id, .bytes = {}, .record = {}});
  }
  OC_TRY_VOID(watch.Look());
  return watch;
}

Result<void> WriterWatch::Look() {
  std::vector<Watched> still;
  for (Watched& writer : writers_) {
    OC_TRY(there, LookAt(&writer));
    if (there) still.push_back(std::move(writer));
  }
  writers_ = std::move(still);
  return {};
}

Result<bool> WriterWatch::LookAt(Watched* writer) const {
  const std::string key = WriterKey(writer->id);
  Result<std::string> bytes = repository_->store().Get(key, 0, kWriterMost);
  if (!bytes && bytes.error().code == ErrorCode::kNotFound) return false;
  if (!bytes) return Fail(std::move(bytes).error());
  if (*bytes != writer->bytes) {
    writer->bytes = *std::move(bytes);
    writer->since_us = repository_->clock().MonotonicUs();
    // One that is damaged is a writer of which nothing is known.
    writer->record = DecodeWriterRecord(writer->bytes, key).value_or(WriterRecord());
  }
  OC_TRY(dead, Dead(*writer));
  if (dead) OC_TRY_VOID(repository_->store().Remove(key));
  return !dead;
}

Result<bool> WriterWatch::Dead(const Watched& writer) const {
  WriterSigns signs;
  signs.same_beat_us = repository_->clock().MonotonicUs() - writer.since_us;
  signs.surely_gone = SurelyGone(writer.record.process);
  const Result<StoredObjectInfo> own = repository_->store().Stat(WriterKey(own_id_));
  const Result<StoredObjectInfo> its = repository_->store().Stat(WriterKey(writer.id));
  if (own && its) signs.behind_us = own->modified_us - its->modified_us;
  return IsDead(signs, dead_after_us_);
}

bool WriterWatch::Has(const std::string& id) const {
  return std::any_of(writers_.begin(), writers_.end(),
                     [&](const Watched& writer) { return writer.id == id; });
}

bool WriterWatch::MustWait(const std::string& condemned_id) const {
  return !Describe(condemned_id).empty();
}

std::vector<std::string> WriterWatch::Describe(const std::string& condemned_id) const {
  std::vector<std::string> lines;
  for (const Watched& writer : writers_) {
    if (!MustWaitFor(writer.record, condemned_id)) continue;
    lines.push_back(StrCat(DescribeWriter(writer.record), ", since ", LocalMinute(writer.record.began_us)));
  }
  return lines;
}

}  // namespace overcap
