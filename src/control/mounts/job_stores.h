// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "control/stores/open_store.h"
#include "model/mount_spec.h"

namespace overcap {

// A book in which each mount's store has an entry of the mount's name, with what its `access` says.
Result<StoreBook> BookOfMounts(const std::vector<MountSpec>& mounts, const Variables& variables);
Result<StorePlace> PlaceOfMount(const MountSpec& mount);

// mounts.json.
struct MountsRecord {
  std::string host;  // whose keeper made it: no other host may clear it
  std::vector<MountSpec> mounts;
};
std::string MountsRecordText(const MountsRecord& record);
Result<MountsRecord> ParseMountsRecord(const std::string& text);

}  // namespace overcap
