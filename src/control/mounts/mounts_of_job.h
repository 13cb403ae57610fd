// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "control/mounts/mount_entry.h"
#include "control/stores/open_store.h"

namespace overcap {

// What may say which mounts a job has; an entry of a later one hides one of the same name in those before.
struct MountSources {
  const MountEntries& all;                // mounts:
  const MountEntries& cluster;            // clusters.*.mounts
  const std::vector<std::string>& flags;  // --mount
};

struct JobMounts {
  std::vector<MountSpec> mounts;   // by name; their stores are locations
  std::vector<std::string> notes;  // what the user should know
};

// Reads nothing but the book. kUsage begins with where the entry stands.
Result<JobMounts> MountsOfJob(const MountSources& sources, const StoreBook& book);

}  // namespace overcap
