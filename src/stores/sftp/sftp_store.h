// SPDX-License-Identifier: Apache-2.0
// A store in a folder of another host, through the user's own ssh: nothing has to be installed there.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "stores/sftp/sftp_session.h"
#include "stores/store.h"

namespace overcap {

struct SftpStoreOptions {
  bool create = false;
  KeyRule keys = KeyRule::kPlain;
  bool private_files = true;  // 0600 in folders of 0700; else what the server's umask leaves
  bool durable = true;        // synced before it appears, where the server can
};

// Times and versions are as SFTP has them: to the second. A link that was lost is made anew by the next call.
class SftpStore : public Store {
 public:
  // `path` is absolute, "~" or "~/x". kNotFound, kUsage when it is not a folder; kDenied, kUnavailable.
  static Result<std::unique_ptr<SftpStore>> Open(SftpTarget target, const std::string& path,
                                                 const SftpStoreOptions& options);

  using Store::Put;
  // By a hard link only.
  Result<void> CreateStrictly(const std::string& key, std::string_view bytes) override;
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override;
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override;
  Result<StoredObjectInfo> Stat(const std::string& key) const override;
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override;
  Result<void> Remove(const std::string& key) override;
  Result<int64_t> CleanUp(int64_t older_than_us) override;
  Result<std::unique_ptr<StoreUpload>> StartUpload(const std::string& key, int64_t size,
                                                   PutMode mode) override;
  Result<std::unique_ptr<StoreUpload>> ResumeUpload(const std::string& key, int64_t size, PutMode mode,
                                                    const std::string& identity, int64_t part_size) override;
  bool KeepsTimes() const override { return true; }
  Result<void> SetModified(const std::string& key, int64_t modified_us) override;
  std::string Location() const override { return target_.location; }

 private:
  friend class SftpUpload;

  SftpStore(SftpTarget target, std::string folder, const SftpStoreOptions& options)
      : target_(std::move(target)), folder_(std::move(folder)), options_(options) {}
  Result<std::shared_ptr<SftpSession>> Session() const;
  std::string PathOf(std::string_view key) const;
  Error Because(const SftpFailure& failure, std::string_view what, const std::string& key) const;

  Result<void> EnsureFolder();
  SftpFailure MakeFolders(SftpSession& session, const std::string& path) const;
  // A temporary in the folder of the key, which is made when it is missing.
  SftpFailure OpenTemporary(SftpSession& session, const std::string& key, std::string* path,
                            std::string* handle) const;
  // A file of the server, whose folder is made when it is missing.
  SftpFailure OpenInFolder(SftpSession& session, const std::string& path, uint32_t flags,
                           std::string* handle) const;
  // The temporary becomes the object, or is removed.
  Result<void> Place(SftpSession& session, const std::string& temporary, const std::string& handle,
                     const std::string& key, PutMode mode, bool by_link = false) const;
  // With `by_link` not by a rename, which two can win on some servers.
  SftpFailure CreateOnly(SftpSession& session, const std::string& temporary, const std::string& path,
                         bool by_link, bool* there) const;
  Result<void> PutBytes(const std::string& key, std::string_view bytes, PutMode mode, bool by_link) const;

  const SftpTarget target_;
  const std::string folder_;  // as the server takes it
  const SftpStoreOptions options_;
  mutable std::mutex mutex_;  // guards session_
  mutable std::shared_ptr<SftpSession> session_;
};

}  // namespace overcap
