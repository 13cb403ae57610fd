// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_parts_checksum.h"

#include <algorithm>

#include "base/text.h"
#include "net/http/digests.h"
#include "stores/object_requests.h"

namespace overcap {
namespace {

constexpr int64_t kMiB = 1024 * 1024;
constexpr int64_t kMostParts = 10'000;
constexpr size_t kMostGuesses = 6;
// Overcap, AWS and boto; rclone; s3cmd; MinIO; others.
constexpr int64_t kUsual[] = {8, 5, 15, 16, 64, 10, 50, 32, 100, 128, 20, 25, 256, 512, 1024};

bool Fits(int64_t part, int64_t size, int64_t parts) {
  return part > 0 && PartCount(size, part) == parts;
}

// How large the service says that a part is; nullopt where it does not tell parts apart. The answer's ETag is
// compared here: with If-Match some compare that of the part.
Result<std::optional<int64_t>> AskPart(const S3Bucket& bucket, const std::string& key,
                                       const StoredObjectInfo& object, int64_t number, HttpResponse* head) {
  S3Call call;
  call.method = "HEAD";
  call.key = key;
  call.query = {{"partNumber", std::to_string(number)}};
  std::string body;
  OC_TRY(answer, bucket.service().Call(call, &body));
  if (!answer.problem && WithoutQuotes(answer.head.Find("etag")) != object.version) {
    S3Problem replaced;
    replaced.status = 412;
    return Fail(bucket.ErrorOf(replaced, key, "read"));
  }
  *head = std::move(answer.head);
  const auto size = ParseInt(head->Find("content-length"));
  if (answer.problem || head->status != 206 || !size) return std::nullopt;
  return *size;
}

Result<void> AskWhole(const S3Bucket& bucket, const std::string& key, HttpResponse* head) {
  S3Call call;
  call.method = "HEAD";
  call.key = key;
  std::string body;
  OC_TRY(answer, bucket.Must(call, "read", &body));
  *head = std::move(answer.head);
  return {};
}

}  // namespace

std::optional<S3PartsTag> ParsePartsTag(std::string_view etag) {
  const std::string_view inner = WithoutQuotes(etag);
  const size_t dash = inner.find('-');
  if (dash == inner.npos) return std::nullopt;
  const std::string md5 = Md5OfEtag(inner.substr(0, dash));
  const auto parts = ParseInt(inner.substr(dash + 1));
  if (md5.empty() || !parts || *parts < 1 || *parts > kMostParts) return std::nullopt;
  return S3PartsTag{md5, *parts};
}

std::vector<int64_t> LikelyPartSizes(int64_t size, int64_t parts) {
  std::vector<int64_t> sizes;
  const auto add = [&](int64_t part) {
    if (sizes.size() < kMostGuesses && Fits(part, size, parts) &&
        std::find(sizes.begin(), sizes.end(), part) == sizes.end())
      sizes.push_back(part);
  };
  if (parts == 1) return {std::max<int64_t>(size, 1)};
  for (const int64_t usual : kUsual) add(usual * kMiB);
  // Programs that have a limit of parts take the smallest of whole MiB that is enough.
  const int64_t least = (size / parts + kMiB - 1) / kMiB * kMiB;
  for (int64_t i = 0; i < 3; ++i) add(least + i * kMiB);
  return sizes;
}

std::string Md5OfOthers(const HttpResponse& head) {
  const auto bytes = Base64Bytes(head.Find("x-amz-meta-md5chksum"));
  if (bytes && bytes->size() == 16)
    return HexOf({reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()});
  constexpr std::string_view kName = "md5:";
  for (const std::string& pair : Split(head.Find("x-amz-meta-s3cmd-attrs"), '/'))
    if (pair.starts_with(kName)) return Md5OfEtag(std::string_view(pair).substr(kName.size()));
  return "";
}

Result<StoredChecksum> ChecksumInParts(const S3Bucket& bucket, const std::string& key,
                                       const StoredObjectInfo& object) {
  const auto tag = ParsePartsTag(object.version);
  if (!tag) return StoredChecksum{};
  HttpResponse head;
  OC_TRY(first, AskPart(bucket, key, object, 1, &head));
  if (head.status >= 300) OC_TRY_VOID(AskWhole(bucket, key, &head));
  if (head.Find("x-amz-server-side-encryption") == "aws:kms") return StoredChecksum{};
  StoredChecksum told{.md5 = Md5OfOthers(head), .md5_of_parts = tag->md5};
  const auto own = ParseInt(head.Find("x-amz-meta-overcap-part-size"));
  if (own && Fits(*own, object.size, tag->parts)) {
    told.part_sizes = {*own};
    told.sure = true;
    return told;
  }
  if (!first || !Fits(*first, object.size, tag->parts)) {
    told.part_sizes = LikelyPartSizes(object.size, tag->parts);
    told.sure = tag->parts == 1;
    return told;
  }
  // Parts need not be alike: when first and last are what they would be then, they are taken to be.
  told.part_sizes = {*first};
  OC_TRY(last, AskPart(bucket, key, object, tag->parts, &head));
  told.sure = last == object.size - (tag->parts - 1) * *first;
  return told;
}

}  // namespace overcap
