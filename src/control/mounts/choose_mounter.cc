// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/choose_mounter.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {
namespace {

// What a mounter can do. Of those that can, an earlier one is taken first: by how well it reads, or writes.
struct Ability {
  std::string_view name;
  StoreKind kind;
  int reads, writes;  // its place in the order
  bool cache, ca_file;
};
constexpr Ability kAbilities[] = {
    {"mount-s3", StoreKind::kS3, 0, 2, true, false}, {"rclone", StoreKind::kS3, 1, 0, true, true},
    {"goofys", StoreKind::kS3, 2, 1, false, false},  {"blobfuse2", StoreKind::kAzure, 0, 0, true, false},
    {"rclone", StoreKind::kAzure, 1, 1, true, true}, {"sshfs", StoreKind::kSsh, 0, 0, false, true},
};

// Why it cannot do that; "" when it can.
std::string CannotDo(const Ability& ability, const MountSpec& mount) {
  if (mount.cache_bytes > 0 && !ability.cache) return "has no cache that can be limited";
  if (mount.access.contains("ca_file") && !ability.ca_file) return "takes no 'ca_file'";
  return "";
}

std::vector<Ability> InOrder(StoreKind kind, bool writes) {
  std::vector<Ability> found;
  for (const Ability& ability : kAbilities) {
    if (ability.kind == kind) found.push_back(ability);
  }
  std::ranges::sort(found, {}, [&](const Ability& each) { return writes ? each.writes : each.reads; });
  return found;
}

}  // namespace

Result<void> CheckMounter(const MountSpec& mount, StoreKind kind) {
  if (mount.mounter.empty()) return {};
  for (const Ability& ability : kAbilities) {
    if (ability.name != mount.mounter || ability.kind != kind) continue;
    const std::string cannot = CannotDo(ability, mount);
    if (cannot.empty()) return {};
    return Fail(ErrorCode::kUsage, StrCat("mounter '", mount.mounter, "' ", cannot));
  }
  return Fail(ErrorCode::kUsage,
              StrCat("mounter '", mount.mounter, "' cannot mount ", Quoted(mount.store, 200)));
}

Result<std::vector<std::string>> ChooseMounters(const MountSpec& mount, StoreKind kind,
                                                const NodeTools& node) {
  const std::vector<Ability> able = InOrder(kind, mount.mode == MountMode::kWrite);
  OC_TRY_VOID(CheckMounter(mount, kind));
  constexpr std::string_view kOrCopy = "or write 'mode: copy', which needs nothing";
  if (!node.fuse_device)
    return Fail(ErrorCode::kUnavailable, "the node has no /dev/fuse that can be opened",
                StrCat("have the node's admin load the module fuse, ", kOrCopy));
  if (!node.can_unmount)
    return Fail(ErrorCode::kUnavailable, "the node has no fusermount3",
                StrCat("install fuse3 there, ", kOrCopy));
  std::vector<std::string> names, there;
  for (const Ability& ability : able) {
    const std::string name(ability.name);
    if ((!mount.mounter.empty() && mount.mounter != name) || !CannotDo(ability, mount).empty()) continue;
    if (node.mounters.contains(name)) there.push_back(name);
    names.push_back(name);
  }
  if (!there.empty() && !mount.options.empty()) there.resize(1);
  if (!there.empty()) return there;
  return Fail(ErrorCode::kUnavailable,
              names.size() == 1 ? StrCat("'", names[0], "' is not on the node")
                                : StrCat("none of ", Join(names, ", "), " is on the node"),
              StrCat("install ", names.size() == 1 ? "it" : "one of them", " there, ", kOrCopy));
}

}  // namespace overcap
