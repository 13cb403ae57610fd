// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stores/file/file_upload.h"
#include "stores/part_journal.h"

namespace overcap {

// An upload into a folder that goes on after the process was killed (docs/formats/stores.md, ".overcap-part
// files"): the file stands beside its place with a journal of the parts that have arrived.
class PartialUpload : public StoreUpload {
 public:
  // `identity` says what is copied: other bytes have another one. nullptr: another process is at it.
  static Result<std::unique_ptr<PartialUpload>> Start(FileUploadTarget target, const std::string& identity);
  // Without Finish what has arrived stays, unless the disk could not take it.
  ~PartialUpload() override;

  int64_t PartSize() const override { return target_.part_size; }
  Result<void> Part(int64_t index, std::string_view bytes) override;
  bool Has(int64_t index) const override;
  Result<void> ReadBack(int64_t offset, int64_t bytes, std::string* out) const override;
  bool CanReadBack() const override { return true; }
  void Discard() override;
  Result<void> Finish() override;

 private:
  explicit PartialUpload(FileUploadTarget target) : target_(std::move(target)) {}
  int Open(const std::string& identity, bool* busy);
  int ReadJournal();
  int BeginJournal();
  PartJournal Journal() const { return {target_.size, target_.part_size}; }
  tl::unexpected<Error> Failed(int error);

  const FileUploadTarget target_;
  std::string partial_, journal_;  // paths
  Fd fd_, journal_fd_;
  PartWriter writer_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<bool> written_;
  int64_t missing_ = 0;  // parts
  bool finished_ = false, spoilt_ = false;
};

}  // namespace overcap
