// SPDX-License-Identifier: Apache-2.0
// What S3's answers to listings say. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "stores/store.h"

namespace overcap {

struct S3ListPage {
  std::vector<StoredObjectInfo> objects;  // with their whole keys, as the service sorts them
  bool more = false;
  int64_t now_us = 0;  // by the service's clock; whoever has the answer sets it
};
// Of ListObjectsV2. kCorrupt when it is none.
Result<S3ListPage> ParseS3List(std::string_view xml);

struct S3PendingUpload {
  std::string key, id;
  int64_t begun_us = 0;
};
struct S3UploadPage {
  std::vector<S3PendingUpload> uploads;
  std::string next_key, next_id;  // "": this was the last
};
// Of ListMultipartUploads.
Result<S3UploadPage> ParseS3Uploads(std::string_view xml);

struct S3StoredPart {
  int number = 0;
  int64_t size = 0;
  std::string etag;
};
struct S3PartPage {
  std::vector<S3StoredPart> parts;
  int next = 0;  // 0: this was the last
};
// Of ListParts.
Result<S3PartPage> ParseS3Parts(std::string_view xml);

// The MD5 that an ETag is for objects that came in one piece; else "".
std::string Md5OfEtag(std::string_view etag);

}  // namespace overcap
