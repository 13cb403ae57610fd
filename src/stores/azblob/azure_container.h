// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "stores/azblob/azure_listing.h"
#include "stores/azblob/azure_service.h"

namespace overcap {

struct AzureBlobHead {
  StoredObjectInfo info;  // its key is the whole one
  std::string put_mark;
  // Of what was uploaded in blocks by Overcap: the MD5 of the blocks' MD5s and the blocks' size; "" and 0.
  std::string md5_of_parts = {};
  int64_t part_size = 0;
};

// A container with errors that name things as the user of the store knows them. Names of blobs are whole
// ones: with the store's prefix.
class AzureContainer {
 public:
  AzureContainer(std::unique_ptr<AzureService> service, const std::string& prefix);

  // The answer, or what was refused as an error.
  Result<AzureAnswer> Must(const AzureCall& call, std::string_view verb, std::string* body,
                           size_t most = HttpClient::kText) const;
  Result<AzureBlobHead> Head(const std::string& blob) const;  // kNotFound
  Result<AzureListPage> List(const std::string& prefix, const std::string& marker) const;
  // After a put that may not replace was refused: fine when the blob is that very put's, else kConflict.
  Result<void> SettleConflict(const std::string& blob, const std::string& mark) const;

  Error ErrorOf(const AzureProblem& problem, const std::string& blob, std::string_view verb) const;
  const AzureService& service() const { return *service_; }
  const std::string& prefix() const { return prefix_; }
  const std::string& location() const { return location_; }

 private:
  const std::unique_ptr<AzureService> service_;
  const std::string prefix_, location_;
};

// Whether a refusal means that something is there already.
bool IsConflict(const AzureProblem& problem);

}  // namespace overcap
