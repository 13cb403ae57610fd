// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stores/azblob/azure_container.h"
#include "stores/store.h"

namespace overcap {

struct AzureUploadPlan {
  std::string blob;  // the whole name
  int64_t size = 0, part_size = 0;
  PutMode mode = PutMode::kReplace;
  std::string identity;  // "": nothing is gone on with
};

int64_t AzurePartSize(int64_t size, int64_t usual);  // 50,000 blocks at most

// Blocks of a block blob. Those that are never committed are nobody's: the service removes them after a week,
// or when the blob is written. Their names begin with what the upload is of, so that one that was cut off can
// go on.
class AzureUpload : public StoreUpload {
 public:
  // `container` must outlive it.
  static Result<std::unique_ptr<AzureUpload>> Begin(const AzureContainer& container,
                                                    const AzureUploadPlan& plan);

  int64_t PartSize() const override { return plan_.part_size; }
  Result<void> Part(int64_t index, std::string_view bytes) override;
  Result<void> PartOfPieces(int64_t index, std::span<const std::string_view> pieces);
  bool Has(int64_t index) const override;
  void Discard() override;
  Result<void> Finish() override;

 private:
  AzureUpload(const AzureContainer& container, const AzureUploadPlan& plan, std::string mark);
  std::string BlockId(size_t index) const;
  Result<void> TakeBlocks();
  Result<void> PutBlock(int64_t index, std::span<const std::string_view> pieces,
                        const std::string& md5) const;
  std::string PartsText() const;

  const AzureContainer& container_;
  const AzureUploadPlan plan_;
  const std::string mark_;
  mutable std::mutex mutex_;       // guards all below
  std::vector<bool> there_;        // by part
  std::vector<std::string> md5s_;  // 16 bytes each, by part; "": it was there before
};

}  // namespace overcap
