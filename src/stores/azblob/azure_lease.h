// SPDX-License-Identifier: Apache-2.0
// A lock as a lease on a blob, which the service itself keeps (docs/formats/locks.md, "Azure").
#pragma once

#include <string>

#include "stores/azblob/azure_container.h"
#include "stores/lock_place.h"

namespace overcap {

class AzureLease : public LockPlace {
 public:
  // `container` must outlive it; `blob` is the whole name.
  AzureLease(const AzureContainer& container, std::string blob);

  Result<std::optional<LockRecord>> Look() override;
  Result<LockTake> Take(const LockRecord& own) override;
  Result<void> Renew() override;
  Result<void> Release() override;
  int64_t SentUs() const override { return sent_us_; }
  int64_t Turn() const override { return turn_; }

 private:
  struct Seen {
    bool there = false, leased = false;
    std::string bytes;
  };
  Result<Seen> Read() const;
  // Of nobody, when it does not say.
  LockRecord HolderOf(const Seen& seen) const;
  Result<AzureAnswer> Lease(const std::string& action, std::vector<HttpHeader> more) const;
  Result<void> PutBlob(std::string_view bytes, const HttpHeader& condition) const;
  Result<void> SignIn(LockRecord own);
  Result<void> OfHolder(const std::string& action);  // "renew" or "release"

  const AzureContainer& container_;
  const std::string blob_;
  std::string id_;  // of the lease; a secret: whoever knows it may end the lease
  int64_t sent_us_ = 0;
  int64_t turn_ = 0;
};

}  // namespace overcap
