// SPDX-License-Identifier: Apache-2.0
#include "stores/all_stores.h"

#include <algorithm>

#include "base/text.h"
#include "stores/azblob/azure_store.h"
#include "stores/file/file_store.h"
#include "stores/mem/mem_store.h"
#include "stores/s3/s3_store.h"
#include "stores/sftp/sftp_store.h"

namespace overcap {
namespace {

constexpr int64_t kLeastGreetingUs = 15'000'000;  // of ssh: keys are exchanged, and people log in

template <typename Made>
Result<std::unique_ptr<Store>> AsStore(Result<std::unique_ptr<Made>> made) {
  if (!made) return Fail(std::move(made).error());
  return std::unique_ptr<Store>(std::move(*made));
}

Result<std::unique_ptr<Store>> OpenFolder(const StoreLocation& location, const OpenStoreOptions& options) {
  if (!location.path.starts_with('/'))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(location.path, 200), " is not the location of a store"),
                "give the absolute path of a folder, as in /nfs/lab/store");
  FileStoreOptions of_file;
  of_file.create = options.create;
  of_file.keys = options.keys;
  of_file.manner.private_files = options.private_files;
  of_file.manner.durable = options.durable;
  return AsStore(FileStore::Open(location.path, std::move(of_file)));
}

Result<std::unique_ptr<Store>> OpenSsh(const StoreLocation& location, const StoreAccess& access,
                                       const OpenStoreOptions& options) {
  SftpTarget target;
  target.user = location.user;
  target.host = location.host;
  target.port = location.port;
  target.program = access.ssh_program;
  target.env = access.ssh_env;
  target.location = location.Text();
  if (options.patience_us > 0) {
    target.answer_us = options.patience_us;
    target.greeting_us = std::max(options.patience_us, kLeastGreetingUs);
  }
  return AsStore(SftpStore::Open(std::move(target), location.path,
                                 {options.create, options.keys, options.private_files, options.durable}));
}

void BePatient(const OpenStoreOptions& options, ServiceTuning* tuning) {
  const int64_t patience_us = options.patience_us;
  if (patience_us > 0) {
    tuning->retry.deadline_us = tuning->unreached_deadline_us = patience_us;
    tuning->deadlines = {patience_us, patience_us, patience_us};
  }
  if (options.answered) tuning->unreached_deadline_us = tuning->retry.deadline_us;
}

Result<std::unique_ptr<S3Store>> OpenS3(const StoreLocation& location, const StoreAccess& access,
                                        const OpenStoreOptions& wanted) {
  S3StoreOptions options;
  options.keys = wanted.keys;
  BePatient(wanted, &options.tuning);
  S3Access s3;
  s3.endpoint = access.s3.endpoint;
  if (!access.s3.region.empty()) s3.region = access.s3.region;
  s3.access_key = access.s3.access_key;
  s3.secret = access.s3.secret;
  s3.session_token = access.s3.session_token;
  s3.path_style = access.s3.path_style;
  s3.ca_file = access.s3.ca_file;
  return S3Store::Open(s3, location.bucket, location.prefix, options);
}

Result<std::unique_ptr<AzureStore>> OpenAzure(const StoreLocation& location, const StoreAccess& access,
                                              const OpenStoreOptions& wanted) {
  AzureStoreOptions options;
  options.keys = wanted.keys;
  BePatient(wanted, &options.tuning);
  AzureAccess azure;
  azure.account = location.account;
  azure.container = location.bucket;
  azure.key = access.azure.key;
  azure.sas = access.azure.sas;
  azure.endpoint = access.azure.endpoint;
  azure.ca_file = access.azure.ca_file;
  return AzureStore::Open(azure, location.prefix, options);
}

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(const StoreLocation& location, const StoreAccess& access,
                                         const OpenStoreOptions& wanted) {
  const bool service = location.kind == StoreKind::kS3 || location.kind == StoreKind::kAzure;
  OpenStoreOptions options = wanted;
  if (options.keys == KeyRule::kService && !service) options.keys = KeyRule::kAny;
  switch (location.kind) {
    case StoreKind::kFolder:
      return OpenFolder(location, options);
    case StoreKind::kMemory:
      return AsStore(MemStore::Named(location.path, options.create, options.keys));
    case StoreKind::kS3:
      return AsStore(OpenS3(location, access, options));
    case StoreKind::kAzure:
      return AsStore(OpenAzure(location, access, options));
    case StoreKind::kSsh:
      return OpenSsh(location, access, options);
  }
  return Fail(ErrorCode::kInternal, "a kind of store that nobody knows");
}

Result<std::unique_ptr<Store>> OpenStore(const std::string& location, bool create) {
  OC_TRY(parsed, ParseStoreLocation(location));
  if (parsed.kind != StoreKind::kFolder && parsed.kind != StoreKind::kMemory)
    return Fail(ErrorCode::kUsage, StrCat(Quoted(location, 200), " is not the location of a folder"),
                "give the absolute path of a folder, as in /nfs/lab/store");
  return OpenStore(parsed, {}, {.create = create});
}

Result<std::string> StoreUrl(const StoreLocation& location, const StoreAccess& access, const std::string& key,
                             int64_t seconds) {
  if (location.kind == StoreKind::kS3) {
    OC_TRY(store, OpenS3(location, access, {.keys = KeyRule::kAny}));
    OC_TRY_VOID(store->Stat(key));
    return store->UrlOf(key, seconds);
  }
  if (location.kind == StoreKind::kAzure) {
    OC_TRY(store, OpenAzure(location, access, {.keys = KeyRule::kAny}));
    OC_TRY_VOID(store->Stat(key));
    return store->UrlOf(key, seconds);
  }
  return Fail(ErrorCode::kUsage, StrCat("there are no URLs for what is in ", Quoted(location.Text(), 200)),
              "only s3:// and az:// have them");
}

}  // namespace overcap
