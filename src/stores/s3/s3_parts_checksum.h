// SPDX-License-Identifier: Apache-2.0
// S3 tells of an object that came in parts the MD5 of the parts' MD5s, not how large the parts were.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stores/s3/s3_bucket.h"
#include "stores/store.h"

namespace overcap {

// What the ETag of an object in parts says: "<32 hex digits>-<number of parts>".
struct S3PartsTag {
  std::string md5;
  int64_t parts = 0;
};
std::optional<S3PartsTag> ParsePartsTag(std::string_view etag);

// Which sizes parts of an object can have had, when programs that are much used have uploaded it: whole MiB,
// the most usual first, few.
std::vector<int64_t> LikelyPartSizes(int64_t size, int64_t parts);

// The MD5 of the whole that rclone and s3cmd leave beside what they upload in parts; "" when there is none.
std::string Md5OfOthers(const HttpResponse& head);

// Of an object as it was listed; asks the service. Nothing is told of what it encrypts with keys of its own.
Result<StoredChecksum> ChecksumInParts(const S3Bucket& bucket, const std::string& key,
                                       const StoredObjectInfo& object);

}  // namespace overcap
