// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stores/s3/s3_listing.h"
#include "stores/s3/s3_service.h"

namespace overcap {

// What an object was marked with when it was written; see S3Bucket::Put.
struct S3ObjectHead {
  StoredObjectInfo info;  // its key is the whole one
  std::string put_mark;
};

// A bucket with errors that name things as the user of the store knows them. Keys are whole ones: with the
// store's prefix.
class S3Bucket {
 public:
  S3Bucket(std::unique_ptr<S3Service> service, const std::string& prefix);

  // The answer, or what was refused as an error.
  Result<S3Answer> Must(const S3Call& call, std::string_view verb, std::string* body,
                        size_t most = HttpClient::kText) const;
  // kNotFound; what HEAD refuses without a reason is asked for again by GET.
  Result<S3ObjectHead> Head(const std::string& key) const;
  // An object of our own making under a name that is no key, to mark something with.
  Result<void> PutNote(const std::string& key, std::string_view text) const;
  Result<void> Remove(const std::string& key) const;
  Result<S3ListPage> List(const std::string& prefix, const std::string& after) const;
  // The page behind the key `after`, which becomes the page's last one. kUnavailable when the list does not
  // go on.
  Result<S3ListPage> ListAfter(const std::string& prefix, std::string* after) const;
  Error ErrorOf(const S3Problem& problem, const std::string& key, std::string_view verb) const;
  const S3Service& service() const { return *service_; }
  const std::string& prefix() const { return prefix_; }      // "" or "a/b/"
  const std::string& location() const { return location_; }  // "s3://bucket/a/b"

 private:
  const std::unique_ptr<S3Service> service_;
  const std::string prefix_, location_;
};

// Names under which notes lie: never keys (kTemporaryBegin).
std::string ClaimFolder(const S3Bucket& bucket, const std::string& key);
std::string UploadNote(const S3Bucket& bucket, const std::string& key, const std::string& identity);

// Creates where the service cannot do it by itself: at most one of all that use this wins. `put` is called
// when the key is not there and nobody else is about to make it. kConflict; kUnavailable when others stand in
// the way for long.
Result<void> CreateByClaim(const S3Bucket& bucket, const std::string& key,
                           const std::function<Result<void>()>& put);

}  // namespace overcap
