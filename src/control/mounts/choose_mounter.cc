// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/choose_mounter.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace overcap {
namespace {

// What a mounter can do. Of those that mount a store, the first is tried first.
struct Ability {
  std::string_view name;
  StoreKind kind;
  bool ca_file;
};
constexpr Ability kAbilities[] = {
    {"rclone", StoreKind::kS3, true},
    {"blobfuse2", StoreKind::kAzure, false},
    {"rclone", StoreKind::kAzure, true},
};

bool TakesAccess(const Ability& ability, const MountSpec& mount) {
  return ability.ca_file || !mount.access.contains("ca_file");
}

Result<void> CheckRaw(const MountSpec& mount) {
  if (std::ranges::find(mount.options, kMountPointWord) == mount.options.end())
    return Fail(ErrorCode::kUsage,
                StrCat("mounter ", Quoted(mount.mounter, 200), " is neither ", Join(MounterNames(), " nor "),
                       ": 'options' must be all its words, with MOUNTPOINT for the folder"),
                "as in 'mounter: sshfs, options: [-f, -o, ro, host:/path, MOUNTPOINT]'; it must stay in the "
                "foreground");
  if (mount.cache_bytes == 0) return {};
  return Fail(ErrorCode::kUsage, StrCat("'cache' means nothing to mounter ", Quoted(mount.mounter, 200)),
              "give it its own words for that in 'options'");
}

}  // namespace

Result<void> CheckMounter(const MountSpec& mount, StoreKind kind) {
  if (IsCopy(mount.mode) || IsLinkedFolder(mount)) return {};
  if (HasRawMounter(mount)) return CheckRaw(mount);
  bool known = false;
  for (const Ability& ability : kAbilities) {
    if (ability.kind != kind || (!mount.mounter.empty() && ability.name != mount.mounter)) continue;
    if (TakesAccess(ability, mount)) return {};
    known = true;
  }
  if (known) return Fail(ErrorCode::kUsage, StrCat("mounter '", mount.mounter, "' takes no 'ca_file'"));
  if (!mount.mounter.empty())
    return Fail(ErrorCode::kUsage,
                StrCat("mounter '", mount.mounter, "' cannot mount ", Quoted(mount.store, 200)));
  return Fail(ErrorCode::kUsage, StrCat(Quoted(mount.store, 200), " can be mounted by a raw mounter only"),
              "write 'mode: copy', or 'mounter: sshfs, options: [-f, -o, ro, host:/path, MOUNTPOINT]'");
}

Result<std::vector<std::string>> ChooseMounters(const MountSpec& mount, StoreKind kind,
                                                const NodeTools& node) {
  OC_TRY_VOID(CheckMounter(mount, kind));
  constexpr std::string_view kOrCopy = "or write 'mode: copy', which needs nothing";
  if (!node.fuse_device)
    return Fail(ErrorCode::kUnavailable, "the node has no /dev/fuse that can be opened",
                StrCat("have the node's admin load the module fuse, ", kOrCopy));
  if (!node.can_unmount)
    return Fail(ErrorCode::kUnavailable, "the node has no fusermount3",
                StrCat("install fuse3 there, ", kOrCopy));
  std::vector<std::string> names, there;
  if (HasRawMounter(mount)) names.push_back(mount.mounter);
  for (const Ability& ability : kAbilities) {
    const std::string name(ability.name);
    if (ability.kind != kind || (!mount.mounter.empty() && mount.mounter != name)) continue;
    if (TakesAccess(ability, mount)) names.push_back(name);
  }
  std::ranges::copy_if(names, std::back_inserter(there),
                       [&](const std::string& name) { return node.mounters.contains(name); });
  if (!there.empty() && !mount.options.empty()) there.resize(1);
  if (!there.empty()) return there;
  return Fail(ErrorCode::kUnavailable,
              names.size() == 1 ? StrCat("'", names[0], "' is not on the node")
                                : StrCat("none of ", Join(names, ", "), " is on the node"),
              StrCat("install ", names.size() == 1 ? "it" : "one of them", " there, ", kOrCopy));
}

}  // namespace overcap
