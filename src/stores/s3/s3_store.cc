// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_store.h"

#include <algorithm>

#include "base/text.h"
#include "net/http/digests.h"
#include "stores/object_requests.h"
#include "stores/paged_listing.h"
#include "stores/s3/s3_parts_checksum.h"
#include "stores/s3/s3_upload.h"

namespace overcap {
namespace {

constexpr size_t kLongestS3Key = 1024;
constexpr int64_t kLargestPut =
    1024ll * 1024 * 1024;  // S3 takes 5 GiB; what is large is better sent in parts
constexpr int64_t kLongestUrlSeconds = 7 * 86'400;
constexpr int64_t kLeastPart = 5 * 1024 * 1024;
const PosixClock kClock;

}  // namespace

Result<std::unique_ptr<S3Store>> S3Store::Open(const S3Access& access, const std::string& bucket,
                                               const std::string& prefix, const S3StoreOptions& options) {
  OC_TRY(service, S3Service::Open(access, bucket, kClock, options.tuning));
  S3StoreOptions fitting = options;
  fitting.part_size = std::max(options.part_size, kLeastPart);
  return std::unique_ptr<S3Store>(new S3Store(std::move(service), prefix, fitting));
}

Result<std::string> S3Store::WholeKey(const std::string& key) const {
  OC_TRY_VOID(ValidKey(key, options_.keys));
  std::string whole = StrCat(bucket_.prefix(), key);
  if (whole.size() <= kLongestS3Key && IsUtf8(whole)) return whole;
  return Fail(ErrorCode::kUsage, StrCat(Quoted(key), " cannot be the name of an object in S3"),
              "with the store's prefix a name has 1024 bytes at most, in UTF-8");
}

Result<void> S3Store::Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) {
  OC_TRY(whole, WholeKey(key));
  if (const int64_t size = SizeOfPieces(pieces); size > kLargestPut)
    return PutInParts(whole, pieces, size, mode);
  if (mode == PutMode::kReplace || !no_conditions_) {
    auto put = PutWhole(whole, pieces, mode);
    if (put || mode == PutMode::kReplace || !no_conditions_) return put;
  }
  return CreateByClaim(bucket_, whole, [&] { return PutWhole(whole, pieces, PutMode::kReplace); });
}

Result<void> S3Store::CreateStrictly(const std::string& key, std::string_view bytes) {
  OC_TRY(whole, WholeKey(key));
  auto put = PutWhole(whole, std::span(&bytes, 1), PutMode::kCreate);
  if (put || !no_conditions_) return put;
  return Fail(ErrorCode::kUsage,
              StrCat("store ", Quoted(Location(), 300),
                     " cannot keep locks: its service has no conditional put ('If-None-Match')"),
              "use another store for the lock: a folder, ssh://, az://, or S3 of AWS, Ceph or MinIO");
}

// The hash that is signed, and that the service therefore compares, is also kept with the object: who reads
// it whole can compare once more.
Result<void> S3Store::PutWhole(const std::string& whole, std::span<const std::string_view> pieces,
                               PutMode mode) {
  S3Call call;
  call.method = "PUT";
  call.key = whole;
  call.body = pieces;
  call.has_body = true;
  call.payload_hash = HexOf(Sha256OfPieces(pieces));
  call.headers = {{"content-type", "application/octet-stream"},
                  {"x-amz-meta-overcap-sha256", call.payload_hash}};
  std::string mark;
  if (mode == PutMode::kCreate) {
    mark = NewPutMark();
    call.headers.push_back({"if-none-match", "*"});
    call.headers.push_back({"x-amz-meta-overcap-put", mark});
  }
  std::string body;
  OC_TRY(answer, bucket_.service().Call(call, &body));
  if (!answer.problem) return {};
  if (mode == PutMode::kCreate && answer.problem->status == 412) return SettleConflict(whole, mark);
  if (mode == PutMode::kCreate && answer.problem->status == 501) no_conditions_ = true;
  return Fail(bucket_.ErrorOf(*answer.problem, whole, "write"));
}

// It may be ours: from a try whose answer was lost.
Result<void> S3Store::SettleConflict(const std::string& whole, const std::string& mark) const {
  const auto head = bucket_.Head(whole);
  if (head && head->put_mark == mark) return {};
  return Fail(ErrorCode::kConflict, StrCat(Quoted(whole.substr(bucket_.prefix().size()), 200),
                                           " is already in store ", Quoted(Location(), 500)));
}

Result<void> S3Store::PutInParts(const std::string& whole, std::span<const std::string_view> pieces,
                                 int64_t size, PutMode mode) {
  const int64_t part = S3PartSize(size, 64 * 1024 * 1024);
  OC_TRY(upload, S3Upload::Begin(bucket_, {whole, size, part, mode, ""}));
  for (int64_t i = 0; i < PartCount(size, part); ++i) {
    const auto slice = SliceOfPieces(pieces, i * part, part);
    OC_TRY_VOID(upload->PartOfPieces(i, slice));
  }
  return upload->Finish();
}

Result<void> S3Store::Read(const std::string& whole, const std::string& version, int64_t offset,
                           int64_t limit, std::string* out) const {
  S3Call call;
  call.key = whole;
  const bool all = offset == 0 && limit == kAll;
  if (!all) call.headers.push_back({"range", ByteRange(offset, limit)});
  if (!version.empty()) call.headers.push_back({"if-match", StrCat("\"", version, "\"")});
  OC_TRY(answer, bucket_.service().Call(call, out, static_cast<size_t>(std::max<int64_t>(limit, 1))));
  if (answer.problem) {
    if (answer.problem->status != 416 && answer.problem->code != "InvalidRange")
      return Fail(bucket_.ErrorOf(*answer.problem, whole, "read"));
    out->clear();
    return {};
  }
  if (limit == 0) out->clear();
  // Some services answer 200 and say in the header that it is the range.
  const bool is_range = answer.head.status == 206 || !answer.head.Find("content-range").empty();
  if (!all && offset > 0 && !is_range)
    return Fail(ErrorCode::kUnavailable,
                StrCat("the service of '", Location(), "' does not give parts of objects"));
  if (is_range && !answer.head.Find("content-range").starts_with(StrCat("bytes ", offset, "-")))
    return Fail(ErrorCode::kUnavailable,
                StrCat("the service of '", Location(), "' gave another part than was asked for"));
  const std::string_view hash = answer.head.Find("x-amz-meta-overcap-sha256");
  if (all && !is_range && hash.size() == 64 && HexOf(Sha256OfText(*out)) != hash)
    return Fail(ErrorCode::kCorrupt, StrCat(Quoted(whole.substr(bucket_.prefix().size()), 200), " in store ",
                                            Quoted(Location(), 500), " is not what was written there"));
  return {};
}

Result<void> S3Store::GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                                std::string* out) const {
  OC_TRY(whole, WholeKey(object.key));
  OC_TRY_VOID(ValidRange(object.key, offset, limit));
  return Read(whole, object.version, offset, limit, out);
}

Result<StoredObjectInfo> S3Store::Stat(const std::string& key) const {
  OC_TRY(whole, WholeKey(key));
  OC_TRY(head, bucket_.Head(whole));
  head.info.key = key;
  return head.info;
}

// A page begins behind a key, whatever that is: so the last key that the service gave is enough to go on, in
// whatever order it sorts. What is no key at the end of a page is counted by the next.
Result<StorePage> S3Store::List(const std::string& prefix, const std::string& next) const {
  OC_TRY_VOID(ValidListing(prefix, next, options_.keys));
  std::string after = next.empty() ? "" : StrCat(bucket_.prefix(), next);
  StorePage page;
  int64_t behind = 0;  // no keys, after the last that is one
  while (true) {
    OC_TRY(listed, bucket_.ListAfter(StrCat(bucket_.prefix(), prefix), &after));
    for (StoredObjectInfo& object : listed.objects) {
      if (object.key.size() < bucket_.prefix().size()) continue;
      object.key.erase(0, bucket_.prefix().size());
      if (!IsKey(object.key, options_.keys)) {
        behind += object.key.starts_with(kTemporaryBegin) ? 0 : 1;
        continue;
      }
      page.left_out += std::exchange(behind, 0);
      page.objects.push_back(std::move(object));
    }
    if (!listed.more) {
      page.left_out += behind;
      SortPage(&page);
      return page;
    }
    if (!page.objects.empty()) break;
  }
  page.next = page.objects.back().key;
  SortPage(&page);
  return page;
}

Result<void> S3Store::Remove(const std::string& key) {
  OC_TRY(whole, WholeKey(key));
  return bucket_.Remove(whole);
}

Result<void> S3Store::Takes(const std::string& key) const {
  OC_TRY_VOID(WholeKey(key));
  return {};
}

Result<int64_t> S3Store::CleanUp(int64_t older_than_us) {
  auto ended = AbortStaleUploads(bucket_, older_than_us);
  std::string after;
  int64_t notes = 0;
  for (bool more = true; more;) {
    OC_TRY(page, bucket_.ListAfter(StrCat(bucket_.prefix(), kTemporaryBegin), &after));
    for (const StoredObjectInfo& note : page.objects) {
      if (page.now_us - note.modified_us < older_than_us) continue;
      OC_TRY_VOID(bucket_.Remove(note.key));
      ++notes;
    }
    more = page.more;
  }
  if (!ended) return ended;
  return *ended + notes;
}

Result<std::unique_ptr<StoreUpload>> S3Store::StartUpload(const std::string& key, int64_t size,
                                                          PutMode mode) {
  return ResumeUpload(key, size, mode, "", 0);
}

Result<std::unique_ptr<StoreUpload>> S3Store::ResumeUpload(const std::string& key, int64_t size, PutMode mode,
                                                           const std::string& identity, int64_t part_size) {
  OC_TRY(whole, WholeKey(key));
  const int64_t usual = part_size >= kLeastPart ? part_size : options_.part_size;
  if (size <= usual) return Store::StartUpload(key, size, mode);
  OC_TRY(upload, S3Upload::Begin(bucket_, {whole, size, S3PartSize(size, usual), mode, identity}));
  return std::unique_ptr<StoreUpload>(std::move(upload));
}

Result<StoredChecksum> S3Store::ChecksumOf(const StoredObjectInfo& object) const {
  if (!object.md5.empty()) return StoredChecksum{.md5 = object.md5};
  OC_TRY(whole, WholeKey(object.key));
  return ChecksumInParts(bucket_, whole, object);
}

Result<std::string> S3Store::UrlOf(const std::string& key, int64_t seconds) const {
  OC_TRY(whole, WholeKey(key));
  if (seconds < 1 || seconds > kLongestUrlSeconds)
    return Fail(ErrorCode::kUsage, "a URL of S3 is good for 1 second to 7 days");
  return bucket_.service().Presigned(whole, seconds);
}

Result<void> S3Store::MakeBucket() {
  S3Call call;
  call.method = "PUT";
  call.has_body = true;
  const std::string& region = bucket_.service().access().region;
  // us-east-1 is meant where nothing is said, and may not be said.
  const std::string text = StrCat(
      "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
      "<LocationConstraint>",
      region, "</LocationConstraint></CreateBucketConfiguration>");
  const std::string_view piece = text;
  if (region != "us-east-1") call.body = std::span(&piece, 1);
  std::string body;
  OC_TRY(answer, bucket_.service().Call(call, &body));
  if (!answer.problem || answer.problem->code == "BucketAlreadyOwnedByYou") return {};
  return Fail(bucket_.ErrorOf(*answer.problem, "", "make"));
}

}  // namespace overcap
