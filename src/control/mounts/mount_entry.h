// SPDX-License-Identifier: Apache-2.0
// One mount of `mounts:` in overcap.yaml or of --mount, as it was written (docs/formats/mounts.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/mount_spec.h"

namespace overcap {

struct MountEntry {
  std::string store;  // a location or a name of `stores:`; "none" takes away what stands there already
  std::string at;     // "": the name
  MountMode mode = MountMode::kRead;
  bool mode_said = false;
  int64_t cache_bytes = 0;
  std::string mounter;
  std::vector<std::string> options;
  std::string where;  // "overcap.yaml:3" or "--mount", for messages
  bool operator==(const MountEntry&) const = default;
};
using MountEntries = std::map<std::string, MountEntry>;

// Sets a field that is one text; kUsage for a name that is none, or a value that is none of it.
Result<void> SetMountField(const std::string& field, const std::string& value, MountEntry* entry);
// `options`, as a list.
void SetMountOptions(std::vector<std::string> words, MountEntry* entry);
std::vector<std::string> MountFieldNames();

struct MountField {
  std::string_view name;
  std::string value;
};
// The fields that are set, as they would be written.
std::vector<MountField> MountFields(const MountEntry& entry);

// The mount that it stands for, with the store as written. kUsage without a file's name.
Result<MountSpec> CheckedMount(const std::string& name, const MountEntry& entry);

// "data=s3://bucket/x,at=in,mode=rw": name and entry. kUsage.
struct NamedMount {
  std::string name;
  MountEntry entry;
};
Result<NamedMount> ParseMountFlag(const std::string& text);

}  // namespace overcap
