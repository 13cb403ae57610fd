// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stores/part_journal.h"
#include "stores/sftp/sftp_store.h"

namespace overcap {

// A large object on its way to an SFTP server: a file that parts are written into. With an identity it goes
// on after the process was killed, as PartialUpload does (docs/formats/stores.md, ".overcap-part files").
class SftpUpload : public StoreUpload {
 public:
  // `identity` says what is copied: other bytes have another one. "": it is not kept when it is cut off.
  static Result<std::unique_ptr<SftpUpload>> Start(const SftpStore& store, std::string key, int64_t size,
                                                   PutMode mode, const std::string& identity);
  ~SftpUpload() override;

  int64_t PartSize() const override { return journal_.part_size; }
  Result<void> Part(int64_t index, std::string_view bytes) override;
  bool Has(int64_t index) const override;
  Result<void> ReadBack(int64_t offset, int64_t bytes, std::string* out) const override;
  bool CanReadBack() const override { return true; }
  void Discard() override { discarded_ = true; }
  Result<void> Finish() override;

 private:
  SftpUpload(const SftpStore& store, std::string key, int64_t size, PutMode mode);
  SftpFailure OpenPartial(const std::string& identity);
  void ReadJournal();
  void OpenJournal();
  bool IsAsItSays(const std::string& handle, const PartJournal::Line& line) const;
  void WriteLines(std::unique_lock<std::mutex>* lock);
  bool WasPlacedByAnother() const;

  const SftpStore& store_;
  const std::string key_;
  const PutMode mode_;
  const PartJournal journal_;
  std::shared_ptr<SftpSession> session_;
  std::string temporary_, handle_;  // "" once it is the object, or gone
  std::string journal_path_;        // "" without an identity
  std::string journal_handle_;      // "" where the server does not take one
  bool discarded_ = false;
  mutable std::mutex mutex_;  // guards all below
  std::vector<bool> written_;
  int64_t missing_ = 0;
  std::string lines_;        // of the journal that are not written yet: their parts may not be on the disk
  int64_t lines_bytes_ = 0;  // of these parts
  int64_t journal_end_ = 0;
};

}  // namespace overcap
