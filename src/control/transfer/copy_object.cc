// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/copy_object.h"

#include <algorithm>

#include "base/text.h"

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

// What the two stores say together of a copy that went well.
ProofKind WithService(const CopyWay& way, ProofKind proof) {
  const bool from_here = proof == ProofKind::kNone && !way.from.ChecksPuts();
  return from_here && way.to.ChecksPuts() ? ProofKind::kService : proof;
}

// A mismatch, unless what the listing said is no MD5.
Result<ProofKind> Judged(const CopyWay& way, const CopyTask& task, Result<ProofKind> proof) {
  if (proof) return WithService(way, *proof);
  if (proof.error().code != ErrorCode::kCorrupt) return proof;
  if (!task.from.md5.empty() && !IsProof(way, task)) return ProofKind::kNone;
  return NotWhatItSays(way, task);
}

Result<ProofKind> ReadWhole(const CopyWay& way, const CopyTask& task, std::string* out) {
  OC_TRY(told, way.from.ChecksumOf(task.from));
  StoredObjectInfo object = task.from;
  object.check_ranges = told.by_ranges;
  OC_TRY_VOID(ReadExactly(way.from, object, 0, object.size, out));
  return Judged(way, task, ProveWhole(told, *out));
}

}  // namespace

Result<ProofKind> CopyWhole(const CopyWay& way, const CopyTask& task) {
  BufferPool::Lease lease(way.pool, std::max<int64_t>(task.from.size, 1));
  Result<ProofKind> proof = ReadWhole(way, task, &lease.buffer());
  if (!proof && proof.error().code == ErrorCode::kCorrupt)  // it may have been the way
    proof = ReadWhole(way, task, &lease.buffer());
  if (!proof) return proof;
  OC_TRY_VOID(way.to.Put(task.to, lease.buffer()));
  OC_TRY_VOID(KeepTime(way, task));
  return proof;
}

PartedCopy::PartedCopy(const CopyWay& way, CopyTask task, std::unique_ptr<StoreUpload> upload,
                       StoredChecksum told)
    : way_(way),
      task_(std::move(task)),
      upload_(std::move(upload)),
      parts_(PartCount(task_.from.size, upload_->PartSize())),
      proof_(std::move(told), task_.from.size, upload_->PartSize()) {}

Result<std::unique_ptr<PartedCopy>> PartedCopy::Begin(const CopyWay& way, CopyTask task) {
  // A source that tells no version may have changed since it was cut off: then its time must do. The time of
  // a file can be put back after a change, its ctime cannot.
  const StoredObjectInfo& from = task.from;
  const std::string version =
      from.version.empty() ? std::to_string(from.modified_us) : StrCat("v", from.version);
  std::string identity = StrCat(way.from.Location(), "\n", from.key, "\n", from.size, "\n", version);
  if (from.changed_us != 0) identity += StrCat("\n", from.changed_us);
  OC_TRY(told, way.from.ChecksumOf(from));
  OC_TRY(upload,
         way.to.ResumeUpload(task.to, from.size, PutMode::kReplace, identity, CopyProof::BestPartSize(told)));
  task.from.check_ranges = told.by_ranges;
  std::unique_ptr<PartedCopy> copy(new PartedCopy(way, std::move(task), std::move(upload), std::move(told)));
  for (int64_t part = 0; part < copy->parts_; ++part) {
    if (copy->upload_->Has(part)) copy->bytes_there_ += copy->PartBytes(part);
  }
  if (copy->bytes_there_ > 0) copy->proof_.Incomplete();
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

bool PartedCopy::Done(const Result<void>& copied) {
  if (!copied && !error_) {
    const std::lock_guard lock(cause_mutex_);
    error_ = cause_;
  }
  return --in_hands_ == 0 && (error_ || next_ >= parts_);
}

int64_t PartedCopy::PartBytes(int64_t part) const {
  return std::min(upload_->PartSize(), task_.from.size - part * upload_->PartSize());
}

Result<void> PartedCopy::CopyPart(int64_t part, std::string* buffer) {
  Result<void> copied =
      ReadExactly(way_.from, task_.from, part * upload_->PartSize(), PartBytes(part), buffer);
  if (copied) {
    proof_.Add(part, *buffer);
    copied = upload_->Part(part, *buffer);
  }
  if (!copied) {
    {
      const std::lock_guard lock(cause_mutex_);
      if (!cause_) cause_ = copied.error();
    }
    proof_.GiveUp();
    upload_->GiveUp();  // parts that wait fail now, perhaps before this one is Done: theirs is not the cause
  }
  return copied;
}

Result<ProofKind> PartedCopy::Finish() {
  CopyProof::ReadBack read_back;
  if (upload_->CanReadBack())
    read_back = [this](int64_t offset, int64_t bytes, std::string* out) {
      return upload_->ReadBack(offset, bytes, out);
    };
  Result<ProofKind> proof = Judged(way_, task_, proof_.Judge(read_back));
  if (!proof && proof.error().code == ErrorCode::kCorrupt) upload_->Discard();
  if (!proof) return proof;
  OC_TRY_VOID(upload_->Finish());
  OC_TRY_VOID(KeepTime(way_, task_));
  return proof;
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

Result<bool> SameSum(const Store& a, const StoredObjectInfo& in_a, const Store& b,
                     const StoredObjectInfo& in_b, BufferPool* pool, const std::atomic<bool>* stop) {
  OC_TRY(told, b.ChecksumOf(in_b));
  if (in_a.size != in_b.size || (told.md5.empty() && told.md5_of_parts.empty())) return false;
  const int64_t at_once = std::clamp<int64_t>(in_a.size, 1, kComparedAtOnce);
  BufferPool::Lease lease(pool, at_once);
  CopyProof proof(std::move(told), in_a.size, at_once);
  for (int64_t part = 0; part < PartCount(in_a.size, at_once); ++part) {
    if (stop != nullptr && *stop) return Fail(ErrorCode::kConflict, "stopped");
    const int64_t at = part * at_once;
    OC_TRY_VOID(ReadExactly(a, in_a, at, std::min(at_once, in_a.size - at), &lease.buffer()));
    proof.Add(part, lease.buffer());
  }
  const auto proven = proof.Judge([&](int64_t offset, int64_t bytes, std::string* out) {
    return ReadExactly(a, in_a, offset, bytes, out);
  });
  if (proven) return *proven != ProofKind::kNone;
  if (proven.error().code == ErrorCode::kCorrupt) return false;
  return Fail(proven.error());
}

}  // namespace overcap
