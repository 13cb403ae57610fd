// SPDX-License-Identifier: Apache-2.0
// Which program mounts a store on a node. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/mount_spec.h"
#include "stores/location.h"

namespace overcap {

// What a node has.
struct NodeTools {
  bool fuse_device = false;        // /dev/fuse can be opened
  bool can_unmount = false;        // root, or there is a fusermount
  std::set<std::string> mounters;  // on PATH: of MounterNames() and the one that the mount names
};

// kUsage when the mounter that is asked for cannot do what is asked, on whatever node, a raw one has not all
// its words, or the store needs a raw one.
Result<void> CheckMounter(const MountSpec& mount, StoreKind kind);

// The names of the programs to try, the best first: one, where it is asked for by name or is given options,
// which mean something to one only. kUsage when the mounter that is asked for cannot do what is asked;
// kUnavailable when the node lacks something, and then what to install or to write instead.
Result<std::vector<std::string>> ChooseMounters(const MountSpec& mount, StoreKind kind,
                                                const NodeTools& node);

}  // namespace overcap
