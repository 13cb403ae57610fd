// SPDX-License-Identifier: Apache-2.0
// What a mounter is started with. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/mount_spec.h"
#include "stores/all_stores.h"
#include "stores/location.h"

namespace overcap {

// Where on the node a mount stands.
struct MountPlaces {
  std::string point, cache, config;
  std::string log = {};  // takes what the mounter says
};

struct MounterCommand {
  std::vector<std::string> argv;  // without any key
  std::vector<std::string> env;   // NAME=VALUE, over the keeper's own
  std::string config;             // what `MountPlaces::config` holds, with keys; "": there is none
};

// `mounter` as ChooseMounter gave it. Stays in the foreground. kUsage for a location that it cannot be told.
Result<MounterCommand> ComposeMounter(const std::string& mounter, const MountSpec& mount,
                                      const StoreLocation& location, const StoreAccess& access,
                                      const MountPlaces& places);

}  // namespace overcap
