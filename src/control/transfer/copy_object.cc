// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/copy_object.h"

#include <algorithm>

#include "base/text.h"
#include "control/transfer/md5.h"

namespace overcap {
namespace {

constexpr int64_t kComparedAtOnce = 4 << 20;

// Exactly these bytes of the object as it was listed.
Result<void> ReadExactly(const Store& from, const StoredObjectInfo& object, int64_t offset, int64_t bytes,
                         std::string* out) {
  OC_TRY_VOID(from.GetIntoIf(object, offset, bytes, out));
  if (static_cast<int64_t>(out->size()) == bytes) return {};
  return Fail(ErrorCode::kConflict, StrCat(Quoted(object.key, 200), " in ", Quoted(from.Location(), 200),
                                           " changed while it was copied"));
}

tl::unexpected<Error> NotWhatItSays(const CopyWay& way, const CopyTask& task) {
  return Fail(ErrorCode::kCorrupt,
              StrCat(Quoted(task.from.key, 200), " came from ", Quoted(way.from.Location(), 200),
                     " with another checksum than it has there"),
              "try again; if it stays so, the object is damaged there");
}

// Listings take for an MD5 what is none where a service encrypts with keys of its own; it tells so when asked
// for the object itself.
bool IsProof(const CopyWay& way, const CopyTask& task) {
  const Result<StoredObjectInfo> asked = way.from.Stat(task.from.key);
  return !asked || !asked->md5.empty();
}

Result<void> KeepTime(const CopyWay& way, const CopyTask& task) {
  if (!way.to.KeepsTimes()) return {};
  return way.to.SetModified(task.to, task.from.modified_us);
}

// What arrived, part after part, against what the source says.
Result<void> VerifyArrived(const CopyWay& way, const CopyTask& task) {
  if (task.from.md5.empty()) return {};
  BufferPool::Lease lease(way.pool, kComparedAtOnce);
  Md5 md5;
  for (int64_t at = 0; at < task.from.size;) {
    OC_TRY_VOID(way.to.GetInto(task.to, at, kComparedAtOnce, &lease.buffer()));
    if (lease.buffer().empty()) break;
    md5.Add(lease.buffer());
    at += static_cast<int64_t>(lease.buffer().size());
  }
  if (md5.Hex() == task.from.md5 || !IsProof(way, task)) return {};
  (void)way.to.Remove(task.to);
  return NotWhatItSays(way, task);
}

}  // namespace

Result<void> CopyWhole(const CopyWay& way, const CopyTask& task) {
  BufferPool::Lease lease(way.pool, std::max<int64_t>(task.from.size, 1));
  OC_TRY_VOID(ReadExactly(way.from, task.from, 0, task.from.size, &lease.buffer()));
  if (!task.from.md5.empty() && Md5Hex(lease.buffer()) != task.from.md5 && IsProof(way, task))
    return NotWhatItSays(way, task);
  OC_TRY_VOID(way.to.Put(task.to, lease.buffer()));
  return KeepTime(way, task);
}

PartedCopy::PartedCopy(const CopyWay& way, CopyTask task, std::unique_ptr<StoreUpload> upload)
    : way_(way),
      task_(std::move(task)),
      upload_(std::move(upload)),
      parts_(PartCount(task_.from.size, upload_->PartSize())) {}

Result<std::unique_ptr<PartedCopy>> PartedCopy::Begin(const CopyWay& way, CopyTask task) {
  // A source that tells no version may have changed since it was cut off: then its time must do.
  const StoredObjectInfo& from = task.from;
  const std::string version =
      from.version.empty() ? std::to_string(from.modified_us) : StrCat("v", from.version);
  const std::string identity = StrCat(way.from.Location(), "\n", from.key, "\n", from.size, "\n", version);
  OC_TRY(upload, way.to.ResumeUpload(task.to, from.size, PutMode::kReplace, identity));
  std::unique_ptr<PartedCopy> copy(new PartedCopy(way, std::move(task), std::move(upload)));
  for (int64_t part = 0; part < copy->parts_; ++part) {
    if (copy->upload_->Has(part)) copy->bytes_there_ += copy->PartBytes(part);
  }
  copy->SkipWhatIsThere();
  return copy;
}

void PartedCopy::SkipWhatIsThere() {
  while (next_ < parts_ && upload_->Has(next_)) ++next_;
}

std::optional<int64_t> PartedCopy::TakePart() {
  if (error_ || next_ >= parts_) return std::nullopt;
  const int64_t part = next_++;
  SkipWhatIsThere();
  ++in_hands_;
  return part;
}

bool PartedCopy::Done(Result<void> copied) {
  if (!copied && !error_) error_ = std::move(copied).error();
  return --in_hands_ == 0 && (error_ || next_ >= parts_);
}

int64_t PartedCopy::PartBytes(int64_t part) const {
  return std::min(upload_->PartSize(), task_.from.size - part * upload_->PartSize());
}

Result<void> PartedCopy::CopyPart(int64_t part) {
  const int64_t bytes = PartBytes(part);
  BufferPool::Lease lease(way_.pool, bytes);
  OC_TRY_VOID(ReadExactly(way_.from, task_.from, part * upload_->PartSize(), bytes, &lease.buffer()));
  return upload_->Part(part, lease.buffer());
}

Result<void> PartedCopy::Finish() {
  OC_TRY_VOID(upload_->Finish());
  OC_TRY_VOID(VerifyArrived(way_, task_));
  return KeepTime(way_, task_);
}

Result<bool> SameContent(const Store& a, const StoredObjectInfo& in_a, const Store& b,
                         const StoredObjectInfo& in_b, BufferPool* pool, const std::atomic<bool>* stop) {
  if (in_a.size != in_b.size) return false;
  const int64_t at_once = std::clamp<int64_t>(in_a.size, 1, kComparedAtOnce);
  BufferPool::Lease lease(pool, 2 * at_once);
  std::string second;
  for (int64_t at = 0; at < in_a.size; at += at_once) {
    if (stop != nullptr && *stop) return Fail(ErrorCode::kConflict, "stopped");
    const int64_t bytes = std::min(at_once, in_a.size - at);
    OC_TRY_VOID(ReadExactly(a, in_a, at, bytes, &lease.buffer()));
    OC_TRY_VOID(ReadExactly(b, in_b, at, bytes, &second));
    if (lease.buffer() != second) return false;
  }
  return true;
}

}  // namespace overcap
