// SPDX-License-Identifier: Apache-2.0
// `stores:` of overcap.yaml (docs/formats/stores.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/stores/store_entry.h"

namespace overcap {

// Whether it is one of the names of an entry, and of which kind; kUsage for a name that would be a key, with
// where keys belong. The value is never in a message.
Result<void> SetStoreField(const std::string& field, const std::string& value, StoreEntry* entry);
// The fields that are set, as they would be written.
struct StoreField {
  std::string_view name;
  std::string value;
};
std::vector<StoreField> StoreFields(const StoreEntry& entry);
std::vector<std::string> StoreFieldNames();

// Whether its location can be understood, and its fields mean something to a store of this kind: kUsage,
// without a file's name.
Result<void> CheckStoreEntry(const StoreEntry& entry);

}  // namespace overcap
