// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stores/s3/s3_bucket.h"
#include "stores/store.h"

namespace overcap {

// What an upload has to do.
struct S3UploadPlan {
  std::string key;  // the whole one
  int64_t size = 0, part_size = 0;
  PutMode mode = PutMode::kReplace;
  std::string identity;  // "": it is not kept when it is cut off
};

// Parts of S3's multipart upload: at least 5 MiB each, 10,000 at most.
int64_t S3PartSize(int64_t size, int64_t usual);

class S3Upload : public StoreUpload {
 public:
  // `bucket` must outlive it. With an identity it goes on with what is there of the same.
  static Result<std::unique_ptr<S3Upload>> Begin(const S3Bucket& bucket, const S3UploadPlan& plan);
  ~S3Upload() override;  // takes back what was not finished, unless it has an identity

  int64_t PartSize() const override { return plan_.part_size; }
  Result<void> Part(int64_t index, std::string_view bytes) override;
  Result<void> PartOfPieces(int64_t index, std::span<const std::string_view> pieces);
  bool Has(int64_t index) const override;
  void Discard() override;
  Result<void> Finish() override;

 private:
  S3Upload(const S3Bucket& bucket, const S3UploadPlan& plan);
  std::string NoteKey() const { return UploadNote(bucket_, plan_.key, plan_.identity); }
  Result<void> Create();
  bool TakeUp();  // goes on with an upload that a note tells of
  bool TakeParts();
  Result<void> Complete() const;
  Result<bool> IsOurs() const;

  const S3Bucket& bucket_;
  const S3UploadPlan plan_;
  std::string id_, mark_;
  mutable std::mutex mutex_;        // guards all below
  std::vector<std::string> etags_;  // by part; "": not there
  bool finished_ = false, discarded_ = false;
};

// Ends uploads of the prefix that were begun so long ago; how many.
Result<int64_t> AbortStaleUploads(const S3Bucket& bucket, int64_t older_than_us);

}  // namespace overcap
