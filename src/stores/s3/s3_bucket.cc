// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_bucket.h"

#include "base/text.h"
#include "net/http/digests.h"
#include "net/http/http_date.h"
#include "stores/object_requests.h"

namespace overcap {
namespace {

std::string LocationOf(const std::string& bucket, const std::string& prefix) {
  return StrCat("s3://", bucket, prefix.empty() ? "" : "/", prefix);
}

}  // namespace

S3Bucket::S3Bucket(std::unique_ptr<S3Service> service, const std::string& prefix)
    : service_(std::move(service)),
      prefix_(prefix.empty() ? "" : StrCat(prefix, "/")),
      location_(LocationOf(service_->bucket(), prefix)) {}

Error S3Bucket::ErrorOf(const S3Problem& problem, const std::string& key, std::string_view verb) const {
  S3Subject subject;
  subject.location = location_;
  subject.bucket = service_->bucket();
  subject.region = service_->access().region;
  subject.endpoint = service_->EndpointText();
  subject.key = key.starts_with(prefix_) ? key.substr(prefix_.size()) : key;
  subject.verb = verb;
  return S3ErrorOf(problem, subject);
}

Result<S3Answer> S3Bucket::Must(const S3Call& call, std::string_view verb, std::string* body,
                                size_t most) const {
  OC_TRY(answer, service_->Call(call, body, most));
  if (answer.problem) return Fail(ErrorOf(*answer.problem, call.key, verb));
  return answer;
}

Result<S3ObjectHead> S3Bucket::Head(const std::string& key) const {
  S3Call call;
  call.method = "HEAD";
  call.key = key;
  std::string body;
  OC_TRY(answer, service_->Call(call, &body));
  if (answer.problem && answer.problem->status == 404 && service_->bucket_seen())
    return Fail(ErrorOf(*answer.problem, key, "read"));
  if (answer.problem) {
    // It came between the two, or the clock was wrong, which only the answer to GET can say.
    S3Call get = call;
    get.method = "GET";
    get.headers = {{"range", "bytes=0-0"}};
    OC_TRY_VOID(Must(get, "read", &body));
    OC_TRY(again, Must(call, "read", &body));
    answer = std::move(again);
  }
  const auto size = ParseInt(answer.head.Find("content-length"));
  if (!size)
    return Fail(ErrorCode::kUnavailable, StrCat("the service does not tell the size of ", Quoted(key, 200),
                                                " in store ", Quoted(location_, 500)));
  S3ObjectHead head;
  head.info.key = key;
  head.info.size = *size;
  head.info.modified_us = ParseHttpDate(answer.head.Find("last-modified")).value_or(0);
  head.info.version = WithoutQuotes(answer.head.Find("etag"));
  const bool plain = answer.head.Find("x-amz-server-side-encryption") != "aws:kms";
  head.info.md5 = plain ? Md5OfEtag(head.info.version) : "";
  head.put_mark = answer.head.Find("x-amz-meta-overcap-put");
  return head;
}

Result<void> S3Bucket::PutNote(const std::string& key, std::string_view text) const {
  S3Call call;
  call.method = "PUT";
  call.key = key;
  call.body = std::span(&text, 1);
  call.has_body = true;
  std::string body;
  OC_TRY_VOID(Must(call, "write", &body));
  return {};
}

Result<void> S3Bucket::Remove(const std::string& key) const {
  S3Call call;
  call.method = "DELETE";
  call.key = key;
  std::string body;
  OC_TRY(answer, service_->Call(call, &body));
  if (answer.problem && answer.problem->code != "NoSuchKey")
    return Fail(ErrorOf(*answer.problem, key, "remove"));
  return {};
}

Result<S3ListPage> S3Bucket::List(const std::string& prefix, const std::string& after) const {
  S3Call call;
  call.query = {{"list-type", "2"},
                {"max-keys", std::to_string(service_->tuning().page_size)},
                {"encoding-type", "url"}};
  if (!prefix.empty()) call.query.emplace_back("prefix", prefix);
  if (!after.empty()) call.query.emplace_back("start-after", after);
  std::string body;
  OC_TRY(answer, Must(call, "list", &body));
  auto page = ParseS3List(body);
  if (!page)
    return Fail(page.error().code, StrCat(page.error().message, " ('", service_->EndpointText(), "')"));
  page->now_us = service_->TimeOf(answer);
  return page;
}

Result<S3ListPage> S3Bucket::ListAfter(const std::string& prefix, std::string* after) const {
  OC_TRY(page, List(prefix, *after));
  if (page.objects.empty()) return page;
  if (page.more && page.objects.back().key == *after)
    return Fail(ErrorCode::kUnavailable,
                StrCat("the service's list does not go on ('", service_->EndpointText(), "')"));
  *after = page.objects.back().key;
  return page;
}

std::string ClaimFolder(const S3Bucket& bucket, const std::string& key) {
  return StrCat(bucket.prefix(), kTemporaryBegin, "claims/", HexOf(Sha256OfText(key)), "/");
}

std::string UploadNote(const S3Bucket& bucket, const std::string& key, const std::string& identity) {
  return StrCat(bucket.prefix(), kTemporaryBegin, "uploads/",
                HexOf(Sha256OfText(StrCat(key, "\n", identity))));
}

}  // namespace overcap
