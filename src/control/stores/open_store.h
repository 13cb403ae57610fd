// SPDX-License-Identifier: Apache-2.0
// From what a user writes to a store that is open.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/stores/store_entry.h"
#include "stores/all_stores.h"
#include "stores/location.h"
#include "sys/variables.h"

namespace overcap {

// What locations are understood by.
struct StoreBook {
  StoreEntries entries;  // `stores:` of the configuration
  Variables variables;
  std::string folder;  // the current one, for relative paths; "": there are none
};

// A location and what the configuration says of how it is reached.
struct StorePlace {
  StoreLocation location;  // folders are absolute
  std::string entry;       // its name in `stores:`; "": none

  StorePlace Below(std::string_view more) const { return {location.Below(more), entry}; }
  StorePlace Above() const { return {location.Above(), entry}; }
};

// kUsage for what is none, or a name that nobody knows (when it cannot be a path).
Result<StorePlace> FindStorePlace(const StoreBook& book, const std::string& text);
// How it is reached, with its keys looked up; errors as store_keys.h.
Result<StoreAccess> FindStoreAccess(const StoreBook& book, const StorePlace& place);
// With its keys looked up; errors as store_keys.h and all_stores.h.
Result<std::unique_ptr<Store>> OpenStoreAt(const StoreBook& book, const StorePlace& place,
                                           const OpenStoreOptions& options);
// Both at once, for repositories.
Result<std::unique_ptr<Store>> OpenStoreAt(const StoreBook& book, const std::string& text, bool create);

// A URL by which anybody may read the object for so long; `place` is where its store is. kUsage where there
// is no such thing.
Result<std::string> UrlOfObject(const StoreBook& book, const StorePlace& place, const std::string& key,
                                int64_t seconds);

}  // namespace overcap
