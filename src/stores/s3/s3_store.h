// SPDX-License-Identifier: Apache-2.0
// A store in a bucket of S3, or of a service that speaks it.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "stores/s3/s3_bucket.h"
#include "stores/store.h"

namespace overcap {

struct S3StoreOptions {
  KeyRule keys = KeyRule::kPlain;
  int64_t part_size = 8 * 1024 * 1024;  // of uploads; at least 5 MiB
  S3Tuning tuning;
};

class S3Store : public Store {
 public:
  // Nothing is sent yet: whether the bucket is there, and the keys fit, is known with the first request.
  // `prefix` has no '/' at its ends. kUsage for an endpoint that is none.
  static Result<std::unique_ptr<S3Store>> Open(const S3Access& access, const std::string& bucket,
                                               const std::string& prefix, const S3StoreOptions& options = {});

  using Store::Put;
  // kCreate: If-None-Match; where the service does not have it, by claims (docs/adr/0009-create-by-claim.md).
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override;
  // Never by claims.
  Result<void> CreateStrictly(const std::string& key, std::string_view bytes) override;
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override;
  Result<StoredObjectInfo> Stat(const std::string& key) const override;
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override;
  Result<void> Remove(const std::string& key) override;
  Result<void> Takes(const std::string& key) const override;
  // Uploads that were never finished, and notes of them.
  Result<int64_t> CleanUp(int64_t older_than_us) override;
  Result<std::unique_ptr<StoreUpload>> StartUpload(const std::string& key, int64_t size,
                                                   PutMode mode) override;
  Result<std::unique_ptr<StoreUpload>> ResumeUpload(const std::string& key, int64_t size, PutMode mode,
                                                    const std::string& identity, int64_t part_size) override;
  // Of what was uploaded in parts too, where the size of these is known or one of the usual.
  Result<StoredChecksum> ChecksumOf(const StoredObjectInfo& object) const override;
  bool ChecksPuts() const override { return true; }
  std::string Location() const override { return bucket_.location(); }

  // A URL with which anybody may read the object for so long (7 days at most; kUsage). Nothing is sent:
  // whether it is there is not known.
  Result<std::string> UrlOf(const std::string& key, int64_t seconds) const;
  // Makes the bucket; fine when it is there and ours.
  Result<void> MakeBucket();

 private:
  S3Store(std::unique_ptr<S3Service> service, const std::string& prefix, const S3StoreOptions& options)
      : options_(options), bucket_(std::move(service), prefix) {}

  Result<std::string> WholeKey(const std::string& key) const;
  Result<void> PutWhole(const std::string& whole, std::span<const std::string_view> pieces, PutMode mode);
  Result<void> PutInParts(const std::string& whole, std::span<const std::string_view> pieces, int64_t size,
                          PutMode mode);
  Result<void> SettleConflict(const std::string& whole, const std::string& mark) const;
  Result<void> Read(const std::string& whole, const std::string& version, int64_t offset, int64_t limit,
                    std::string* out) const;

  const S3StoreOptions options_;
  const S3Bucket bucket_;
  std::atomic<bool> no_conditions_{false};  // the service has no If-None-Match
};

}  // namespace overcap
