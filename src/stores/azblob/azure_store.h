// SPDX-License-Identifier: Apache-2.0
// A store in a container of Azure Blob Storage.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "stores/azblob/azure_container.h"
#include "stores/store.h"

namespace overcap {

struct AzureStoreOptions {
  KeyRule keys = KeyRule::kPlain;
  int64_t part_size = 8 * 1024 * 1024;  // of uploads
  AzureTuning tuning;
};

class AzureStore : public Store {
 public:
  // Nothing is sent yet: whether the container is there, and the key fits, is known with the first request.
  // `prefix` has no '/' at its ends. kUsage for an endpoint, a key or a signature that is none.
  static Result<std::unique_ptr<AzureStore>> Open(const AzureAccess& access, const std::string& prefix,
                                                  const AzureStoreOptions& options = {});

  using Store::Put;
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override;
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override;
  Result<StoredObjectInfo> Stat(const std::string& key) const override;
  // Azure goes on by marks of its own, which are kept for the pages given last; from another key than those
  // it reads again from the beginning.
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override;
  Result<void> Remove(const std::string& key) override;
  Result<void> Takes(const std::string& key) const override;
  // Nothing: the service itself removes blocks that were never committed, after a week.
  Result<int64_t> CleanUp(int64_t older_than_us) override;
  Result<std::unique_ptr<StoreUpload>> StartUpload(const std::string& key, int64_t size,
                                                   PutMode mode) override;
  Result<std::unique_ptr<StoreUpload>> ResumeUpload(const std::string& key, int64_t size, PutMode mode,
                                                    const std::string& identity, int64_t part_size) override;
  Result<StoredChecksum> ChecksumOf(const StoredObjectInfo& object) const override;
  bool ChecksPuts() const override { return true; }
  std::string Location() const override { return container_.location(); }

  // A URL with which anybody may read the blob for so long. kDenied without the account's key. Nothing is
  // sent.
  Result<std::string> UrlOf(const std::string& key, int64_t seconds) const;
  // Makes the container; fine when it is there.
  Result<void> MakeContainer();

 private:
  AzureStore(std::unique_ptr<AzureService> service, const std::string& prefix,
             const AzureStoreOptions& options)
      : options_(options), container_(std::move(service), prefix) {}

  Result<std::string> WholeKey(const std::string& key) const;
  Result<std::string> NewKey(const std::string& key) const;  // of a blob that is written
  Result<void> PutWhole(const std::string& whole, std::span<const std::string_view> pieces, PutMode mode);
  Result<void> PutInParts(const std::string& whole, std::span<const std::string_view> pieces, int64_t size,
                          PutMode mode);
  // With `prove` the service tells the MD5 of the range, which may have kLargestProven bytes, and it is
  // compared.
  Result<void> Read(const std::string& whole, const std::string& version, int64_t offset, int64_t limit,
                    std::string* out, bool prove = false) const;
  Result<void> ReadProven(const std::string& whole, const std::string& version, int64_t offset, int64_t limit,
                          std::string* out) const;
  std::string MarkerAfter(const std::string& prefix, const std::string& key) const;
  void KeepMarker(const std::string& prefix, const std::string& key, const std::string& marker) const;

  const AzureStoreOptions options_;
  const AzureContainer container_;
  mutable std::mutex mutex_;                            // guards markers_
  mutable std::map<std::string, std::string> markers_;  // by prefix and last key
};

}  // namespace overcap
