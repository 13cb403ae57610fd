// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/commands/store_words.h"

namespace overcap::cli {

// What `store cp` and `store sync` do: one object, or all of a folder, into another place. The exit status.
struct StoreCopy {
  std::string from, to;       // as typed
  bool folders_only = false;  // sync: a single object is refused
  bool remove_extra = false, dry_run = false, checksum = false, all = false;
};
Result<int> CopyBetweenStores(World& world, const Args& args, const StoreCopy& copy);

// Whether an object that is copied to this place goes into it, under its own name.
bool TakesObjects(World& world, const StorePlace& place);

}  // namespace overcap::cli
