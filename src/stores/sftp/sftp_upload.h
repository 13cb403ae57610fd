// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stores/sftp/sftp_store.h"

namespace overcap {

// A large object on its way to an SFTP server: a temporary that parts are written into.
class SftpUpload : public StoreUpload {
 public:
  static Result<std::unique_ptr<SftpUpload>> Start(const SftpStore& store, std::string key, int64_t size,
                                                   PutMode mode);
  ~SftpUpload() override;

  int64_t PartSize() const override;
  Result<void> Part(int64_t index, std::string_view bytes) override;
  Result<void> Finish() override;

 private:
  SftpUpload(const SftpStore& store, std::string key, int64_t size, PutMode mode)
      : store_(store), key_(std::move(key)), size_(size), mode_(mode) {}

  const SftpStore& store_;
  const std::string key_;
  const int64_t size_;
  const PutMode mode_;
  std::shared_ptr<SftpSession> session_;
  std::string temporary_, handle_;  // "" once it is the object, or gone
  std::mutex mutex_;                // guards all below
  std::vector<bool> written_;
  int64_t missing_ = 0;
};

}  // namespace overcap
