// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_upload.h"

#include <algorithm>

#include "base/text.h"
#include "stores/object_requests.h"
#include "stores/object_size.h"
#include "stores/xml_tree.h"

namespace overcap {
namespace {

constexpr int64_t kMost = 10'000;
constexpr int64_t kMostPart = int64_t{5} << 30;
constexpr int64_t kMiB = 1024 * 1024;
constexpr std::string_view kNoteBegin = "overcap upload 1";

S3Call UploadCall(std::string method, const std::string& key, const std::string& id) {
  S3Call call;
  call.method = std::move(method);
  call.key = key;
  call.query = {{"uploadId", id}};
  return call;
}

Result<void> Abort(const S3Bucket& bucket, const std::string& key, const std::string& id) {
  std::string body;
  OC_TRY(answer, bucket.service().Call(UploadCall("DELETE", key, id), &body));
  if (answer.problem && answer.problem->code != "NoSuchUpload" && answer.problem->status != 404)
    return Fail(bucket.ErrorOf(*answer.problem, key, "clean up"));
  return {};
}

// The uploads behind those of `page`. Some services list all or nothing: no part of the bucket, no page.
Result<S3Answer> AskUploads(const S3Bucket& bucket, const S3UploadPage& page, std::string* body) {
  S3Call all;
  all.query = {{"uploads", ""}, {"encoding-type", "url"}};
  S3Call call = all;
  call.query.emplace_back("max-uploads", std::to_string(bucket.service().tuning().page_size));
  if (!bucket.prefix().empty()) call.query.emplace_back("prefix", bucket.prefix());
  if (!page.next_key.empty()) call.query.emplace_back("key-marker", page.next_key);
  if (!page.next_id.empty()) call.query.emplace_back("upload-id-marker", page.next_id);
  OC_TRY(answer, bucket.service().Call(call, body));
  const bool refused = answer.problem && answer.problem->status == 501 && page.next_key.empty();
  if (refused) return bucket.service().Call(all, body);
  if (answer.problem && answer.problem->status == 400 && !page.next_id.empty()) {
    call.query.pop_back();  // versitygw does not know the id again that it gave
    return bucket.service().Call(call, body);
  }
  return answer;
}

}  // namespace

int64_t S3PartSize(int64_t size, int64_t usual) {
  const int64_t least = (size / (kMost - 1) + kMiB) / kMiB * kMiB;
  return std::max(usual, least);
}

S3Upload::S3Upload(const S3Bucket& bucket, const S3UploadPlan& plan) : bucket_(bucket), plan_(plan) {
  etags_.resize(static_cast<size_t>(PartCount(plan.size, plan.part_size)));
}

Result<std::unique_ptr<S3Upload>> S3Upload::Begin(const S3Bucket& bucket, const S3UploadPlan& plan) {
  OC_TRY_VOID(CheckObjectSize(plan.key.substr(bucket.prefix().size()), plan.size, kMost * kMostPart));
  std::unique_ptr<S3Upload> upload(new S3Upload(bucket, plan));
  if (plan.identity.empty() || !upload->TakeUp()) OC_TRY_VOID(upload->Create());
  return upload;
}

Result<void> S3Upload::Create() {
  S3Call call;
  call.method = "POST";
  call.key = plan_.key;
  call.query = {{"uploads", ""}};
  call.has_body = true;
  mark_ = NewPutMark();
  call.headers = {{"content-type", "application/octet-stream"},
                  {"x-amz-meta-overcap-part-size", std::to_string(plan_.part_size)},
                  {"x-amz-meta-overcap-put", mark_}};
  std::string body;
  OC_TRY_VOID(bucket_.Must(call, "write", &body));
  OC_TRY(root, ParseXml(body));
  id_ = root.TextOf("UploadId");
  if (id_.empty() || id_.size() > 1000 || id_.find('\n') != id_.npos) {
    id_.clear();
    return Fail(ErrorCode::kUnavailable,
                StrCat("'", bucket_.service().EndpointText(), "' does not name the upload"));
  }
  if (plan_.identity.empty()) return {};
  return bucket_.PutNote(NoteKey(),
                         StrCat(kNoteBegin, "\n", plan_.size, "\n", plan_.part_size, "\n", mark_, "\n", id_));
}

// A note that cannot be read, or is not right, is as good as none.
bool S3Upload::TakeUp() {
  S3Call call;
  call.key = NoteKey();
  std::string note;
  const auto answer = bucket_.service().Call(call, &note, 4096);
  if (!answer || answer->problem) return false;
  const std::vector<std::string> lines = Split(note, '\n');
  if (lines.size() != 5 || lines[0] != kNoteBegin || lines[1] != std::to_string(plan_.size) ||
      lines[2] != std::to_string(plan_.part_size) || lines[4].empty())
    return false;
  mark_ = lines[3], id_ = lines[4];
  return TakeParts();
}

bool S3Upload::TakeParts() {
  std::vector<std::string> etags(etags_.size());
  int after = 0;
  do {
    S3Call call = UploadCall("GET", plan_.key, id_);
    call.query.emplace_back("max-parts", std::to_string(bucket_.service().tuning().page_size));
    if (after > 0) call.query.emplace_back("part-number-marker", std::to_string(after));
    std::string body;
    const auto answer = bucket_.service().Call(call, &body);
    const auto page =
        answer && !answer->problem ? ParseS3Parts(body) : Result<S3PartPage>(Fail(ErrorCode::kNotFound, ""));
    if (!page) {
      id_.clear();
      return false;
    }
    for (const S3StoredPart& part : page->parts) {
      const int64_t index = part.number - 1;
      const bool fits = static_cast<size_t>(index) < etags.size() &&
                        part.size == std::min(plan_.part_size, plan_.size - index * plan_.part_size);
      if (fits) etags[static_cast<size_t>(index)] = part.etag;
    }
    after = page->next > after ? page->next : 0;
  } while (after > 0);
  etags_ = std::move(etags);
  return true;
}

bool S3Upload::Has(int64_t index) const {
  const std::lock_guard lock(mutex_);
  return index >= 0 && static_cast<size_t>(index) < etags_.size() &&
         !etags_[static_cast<size_t>(index)].empty();
}

Result<void> S3Upload::Part(int64_t index, std::string_view bytes) {
  return PartOfPieces(index, std::span(&bytes, 1));
}

Result<void> S3Upload::PartOfPieces(int64_t index, std::span<const std::string_view> pieces) {
  const auto size = static_cast<size_t>(SizeOfPieces(pieces));
  OC_TRY_VOID(ValidPart(plan_.key, plan_.size, plan_.part_size, index, size));
  S3Call call = UploadCall("PUT", plan_.key, id_);
  call.query.emplace_back("partNumber", std::to_string(index + 1));
  call.body = pieces;
  call.has_body = true;
  std::string body;
  OC_TRY(answer, bucket_.Must(call, "write", &body));
  const std::string etag(WithoutQuotes(answer.head.Find("etag")));
  if (etag.empty())
    return Fail(ErrorCode::kUnavailable,
                StrCat("'", bucket_.service().EndpointText(), "' does not say what it took for a part"));
  const std::lock_guard lock(mutex_);
  etags_[static_cast<size_t>(index)] = etag;
  return {};
}

// Whether the object that is there now is what this upload made.
Result<bool> S3Upload::IsOurs() const {
  const auto head = bucket_.Head(plan_.key);
  if (head) return head->put_mark == mark_;
  if (head.error().code == ErrorCode::kNotFound) return false;
  return Fail(head.error());
}

Result<void> S3Upload::Complete() const {
  std::string list = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < etags_.size(); ++i)
    list += StrCat("<Part><PartNumber>", i + 1, "</PartNumber><ETag>&quot;", XmlEscape(etags_[i]),
                   "&quot;</ETag></Part>");
  list += "</CompleteMultipartUpload>";
  S3Call call = UploadCall("POST", plan_.key, id_);
  const std::string_view piece = list;
  call.body = std::span(&piece, 1);
  call.has_body = true;
  call.headers = {{"content-type", "application/xml"}};
  std::string body;
  OC_TRY(answer, bucket_.service().Call(call, &body));
  if (!answer.problem) return {};
  // The answer to the first time may have been lost: then the upload is gone and the object is there.
  if (answer.problem->code == "NoSuchUpload" || answer.problem->status == 404) {
    OC_TRY(ours, IsOurs());
    if (ours) return {};
  }
  return Fail(bucket_.ErrorOf(*answer.problem, plan_.key, "write"));
}

Result<void> S3Upload::Finish() {
  const std::lock_guard lock(mutex_);
  const auto missing = std::find(etags_.begin(), etags_.end(), "");
  if (missing != etags_.end())
    return Fail(ErrorCode::kUsage,
                StrCat("part ", missing - etags_.begin(), " of ", Quoted(plan_.key, 200), " is missing"));
  OC_TRY_VOID(plan_.mode == PutMode::kReplace ? Complete() : CreateByClaim(bucket_, plan_.key, [&] {
    return Complete();
  }));
  finished_ = true;
  if (!plan_.identity.empty())
    (void)bucket_.Remove(NoteKey());  // it does no harm, and is cleaned up some day
  return {};
}

void S3Upload::Discard() {
  const std::lock_guard lock(mutex_);
  discarded_ = true;
}

S3Upload::~S3Upload() {
  if (finished_ || id_.empty()) return;
  if (discarded_ || plan_.identity.empty()) (void)Abort(bucket_, plan_.key, id_);
  if (discarded_ && !plan_.identity.empty()) (void)bucket_.Remove(NoteKey());
}

Result<int64_t> AbortStaleUploads(const S3Bucket& bucket, int64_t older_than_us) {
  // All are listed before one is removed: not every service goes on behind an upload that is gone.
  std::vector<S3PendingUpload> stale;
  S3UploadPage page;
  do {
    std::string body;
    OC_TRY(answer, AskUploads(bucket, page, &body));
    if (answer.problem) return Fail(bucket.ErrorOf(*answer.problem, "", "list the unfinished uploads of"));
    OC_TRY(read, ParseS3Uploads(body));
    const std::string before = page.next_key + page.next_id;
    page = std::move(read);
    for (S3PendingUpload& upload : page.uploads) {
      if (!upload.key.starts_with(bucket.prefix())) continue;
      if (bucket.service().TimeOf(answer) - upload.begun_us >= older_than_us)
        stale.push_back(std::move(upload));
    }
    if (page.next_key + page.next_id == before) break;
  } while (!page.next_key.empty());
  for (const S3PendingUpload& upload : stale) OC_TRY_VOID(Abort(bucket, upload.key, upload.id));
  return static_cast<int64_t>(stale.size());
}

}  // namespace overcap
