// SPDX-License-Identifier: Apache-2.0
// A store that a job finds in its folder (docs/formats/mounts.md). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/json_writer.h"
#include "base/result.h"

namespace overcap {

enum class MountMode {
  kRead,      // ro
  kWrite,     // rw
  kCopy,      // downloaded before the ranks, what they changed uploaded after them
  kCopyRead,  // only downloaded
};
std::string_view MountModeName(MountMode mode);  // as it is written
std::optional<MountMode> MountModeFromName(std::string_view name);
inline bool IsCopy(MountMode mode) {
  return mode == MountMode::kCopy || mode == MountMode::kCopyRead;
}

struct MountSpec {
  std::string name;
  std::string store;  // a location; folders are absolute
  std::string at;     // in the job's folder
  MountMode mode = MountMode::kRead;
  int64_t cache_bytes = 0;                    // 0: none
  std::string mounter;                        // "": what the node has
  std::vector<std::string> options;           // more words for it; of a raw mounter all its words
  std::map<std::string, std::string> access;  // how the store is reached; never a key
  bool operator==(const MountSpec&) const = default;
};

constexpr size_t kMostMounts = 32;
constexpr int64_t kLeastCache = 1 << 20;

// The mounters that Overcap composes a command line for.
const std::vector<std::string>& MounterNames();
// Whether the mount names another program, which `options` give all its words: a raw mounter.
bool HasRawMounter(const MountSpec& mount);
// Among the options of a raw mounter, the word in whose place it gets the mount point.
inline constexpr std::string_view kMountPointWord = "MOUNTPOINT";

// kUsage, naming the mount: names, places and numbers, and that no two stand in each other's way.
Result<void> CheckMount(const MountSpec& mount);
Result<void> CheckMounts(const std::vector<MountSpec>& mounts);

// Whether the store is a folder that is linked; tasks of an array may share that.
bool IsLinkedFolder(const MountSpec& mount);

// The array of "mounts".
void WriteMounts(JsonWriter* out, const std::vector<MountSpec>& mounts);
Result<std::vector<MountSpec>> ReadMounts(const nlohmann::json& items);

}  // namespace overcap
