// SPDX-License-Identifier: Apache-2.0
// What a job has changed in its copy of a store.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "stores/store.h"

namespace overcap {

// By which a file is known to be the one that was downloaded.
struct CopyStamp {
  int64_t size = 0, modified_ns = 0, inode = 0;
  bool operator==(const CopyStamp&) const = default;
};
using CopyStamps = std::unordered_map<std::string, CopyStamp>;

// docs/formats/mounts.md, NAME.had.
std::string StampsToText(const CopyStamps& stamps);
Result<CopyStamps> StampsFromText(std::string_view text);

// Those of all files that `copy`, a store that is the folder `path`, lists.
Result<CopyStamps> StampsOf(const Store& copy, const std::string& path);

// The store, of which only these keys are listed. For copying from it: it refuses to be changed.
class OnlyKeys : public Store {
 public:
  OnlyKeys(const Store& store, const CopyStamps& keys) : store_(store), keys_(keys) {}
  using Store::Put;
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override;
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override;
  Result<StoredObjectInfo> Stat(const std::string& key) const override;
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override;
  Result<void> Remove(const std::string& key) override;
  Result<int64_t> CleanUp(int64_t older_than_us) override;
  std::string Location() const override { return store_.Location(); }

 private:
  const Store& store_;
  const CopyStamps& keys_;
};

// Those of `now` that are new or other than in `had`. Pure.
CopyStamps ChangedSince(const CopyStamps& had, const CopyStamps& now);

}  // namespace overcap
