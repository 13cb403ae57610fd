// SPDX-License-Identifier: Apache-2.0
// A store in a folder, also one that many hosts share over NFS: each object is a file of its own under its
// key.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "stores/file/object_file.h"
#include "stores/store.h"
#include "sys/fd.h"

namespace overcap {

struct FileStoreOptions {
  bool create = false;
  KeyRule keys = KeyRule::kPlain;
  FilePutManner manner = {};
};

class FileStore : public Store {
 public:
  // `folder` is absolute; made (0700) with those above it when `create` is set and it is missing.
  // kNotFound, kDenied, kUsage when it is not a folder. `hook` is for tests.
  static Result<std::unique_ptr<FileStore>> Open(const std::string& folder, bool create,
                                                 FilePutHook hook = nullptr);
  static Result<std::unique_ptr<FileStore>> Open(const std::string& folder, FileStoreOptions options);

  using Store::Put;
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
  Result<void> Flush() override;
  std::string Location() const override { return folder_; }

 private:
  FileStore(std::string folder, std::shared_ptr<const Fd> root, FileStoreOptions options)
      : folder_(std::move(folder)), root_(std::move(root)), options_(std::move(options)) {}

  std::shared_ptr<const Fd> Root() const;
  // Runs `act(root)`, which gives 0 or an errno; again with the folder opened anew when the file server says
  // ESTALE.
  int WithRoot(const std::function<int(int root)>& act) const;
  int OpenObject(const std::string& key, Fd* fd, StoredObjectInfo* info) const;
  tl::unexpected<Error> CannotRead(int error, const std::string& key) const;

  const std::string folder_;
  mutable std::mutex mutex_;  // guards root_
  mutable std::shared_ptr<const Fd> root_;
  const FileStoreOptions options_;
};

}  // namespace overcap
