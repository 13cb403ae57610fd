// SPDX-License-Identifier: Apache-2.0
#include "model/mount_spec.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/json_fields.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 4> kModes = {"ro", "rw", "copy", "copy-ro"};

bool IsLine(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7F; });
}

bool IsMountName(std::string_view name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 64 && name[0] != '.' && name[0] != '-' &&
         name.find_first_not_of(kLetters) == std::string_view::npos;
}

tl::unexpected<Error> BadMount(const MountSpec& mount, std::string message, std::string hint = {}) {
  return Fail(ErrorCode::kUsage, StrCat("mount ", Quoted(mount.name), ": ", message), std::move(hint));
}

Result<void> CheckAt(const MountSpec& mount) {
  const std::string shown = Quoted(mount.at, 200);
  if (mount.at.starts_with('/'))
    return BadMount(mount, StrCat("'at' is ", shown, ", it must be a path in the job's folder"));
  for (const std::string& part : Split(mount.at, '/')) {
    if (part.empty() || part == "." || part == ".." || part.size() > 255)
      return BadMount(mount, StrCat("'at' is ", shown, ", it must be a path in the job's folder"));
  }
  if (!IsLine(mount.at) || mount.at.size() > 1000)
    return BadMount(mount, StrCat("'at' is ", shown, ", it must be a plain path"));
  return {};
}

bool IsBelow(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

template <typename Map>
void WriteAccess(JsonWriter* out, const Map& access) {
  if (access.empty()) return;
  out->Key("access").BeginObject();
  for (const auto& [name, value] : access) WriteBytes(out, name, value);
  out->EndObject();
}

Result<MountSpec> ReadMount(const Json& item) {
  if (!item.is_object()) return Fail(ErrorCode::kCorrupt, "mounts of the job spec: no array of objects");
  FieldReader reader(item, "mounts of the job spec");
  MountSpec mount;
  std::string mode;
  reader.Read("name", &mount.name);
  reader.Read("store", &mount.store);
  reader.Read("at", &mount.at);
  reader.Read("mode", &mode);
  reader.Read("cache_bytes", &mount.cache_bytes);
  reader.Read("mounter", &mount.mounter);
  reader.Read("options", &mount.options);
  if (const Json* access = reader.Object("access")) {
    FieldReader fields(*access, "mounts of the job spec");
    for (const auto& [name, value] : access->items()) fields.Read(name, &mount.access[name]);
    reader.Take(fields.Check());
  }
  OC_TRY_VOID(reader.Check());
  if (mount.at.empty()) mount.at = mount.name;
  const auto known = MountModeFromName(mode.empty() ? kModes[0] : mode);
  if (!known) return Fail(ErrorCode::kCorrupt, StrCat("mounts of the job spec: no mode ", Quoted(mode)));
  mount.mode = *known;
  return mount;
}

}  // namespace

std::string_view MountModeName(MountMode mode) {
  return kModes[static_cast<size_t>(mode)];
}

std::optional<MountMode> MountModeFromName(std::string_view name) {
  const auto* found = std::ranges::find(kModes, name);
  if (found == kModes.end()) return std::nullopt;
  return static_cast<MountMode>(found - kModes.begin());
}

const std::vector<std::string>& MounterNames() {
  static const std::vector<std::string> kNames = {"blobfuse2", "rclone"};
  return kNames;
}

bool HasRawMounter(const MountSpec& mount) {
  return !mount.mounter.empty() && std::ranges::find(MounterNames(), mount.mounter) == MounterNames().end();
}

Result<void> CheckMount(const MountSpec& mount) {
  if (!IsMountName(mount.name)) {
    return Fail(ErrorCode::kUsage, StrCat(Quoted(mount.name), " is no name of a mount"),
                "letters, digits, '.', '_' and '-', not beginning with '.' or '-'");
  }
  if (mount.store.empty() || !IsLine(mount.store)) return BadMount(mount, "has no store");
  OC_TRY_VOID(CheckAt(mount));
  if (mount.cache_bytes != 0 && mount.cache_bytes < kLeastCache)
    return BadMount(mount, StrCat("a cache must have at least 1M, not ", mount.cache_bytes, " bytes"));
  if (mount.mounter.starts_with('-') || !IsLine(mount.mounter))
    return BadMount(mount, StrCat("mounter ", Quoted(mount.mounter, 200), " must be the name of a program"));
  for (const std::string& option : mount.options) {
    if (option.empty() || !IsLine(option))
      return BadMount(mount, StrCat("option ", Quoted(option), " must be a word on one line"));
  }
  if (IsCopy(mount.mode) && !(mount.mounter.empty() && mount.options.empty()))
    return BadMount(mount, "'mounter' and 'options' mean nothing to a copy");
  return {};
}

Result<void> CheckMounts(const std::vector<MountSpec>& mounts) {
  if (mounts.size() > kMostMounts)
    return Fail(ErrorCode::kUsage, StrCat("a job may have ", kMostMounts, " mounts, not ", mounts.size()));
  for (size_t i = 0; i < mounts.size(); ++i) {
    OC_TRY_VOID(CheckMount(mounts[i]));
    for (size_t j = 0; j < i; ++j) {
      if (mounts[i].name == mounts[j].name) return BadMount(mounts[i], "stands there a second time");
      if (IsBelow(mounts[i].at, mounts[j].at) || IsBelow(mounts[j].at, mounts[i].at))
        return BadMount(mounts[i], StrCat("'", mounts[i].at, "' is in the way of mount '", mounts[j].name,
                                          "' at '", mounts[j].at, "'"));
    }
  }
  return {};
}

bool IsLinkedFolder(const MountSpec& mount) {
  return mount.store.starts_with('/') && !IsCopy(mount.mode);
}

void WriteMounts(JsonWriter* out, const std::vector<MountSpec>& mounts) {
  out->BeginArray();
  for (const MountSpec& mount : mounts) {
    out->BeginObject();
    WriteBytes(out, "name", mount.name);
    WriteBytes(out, "store", mount.store);
    WriteBytes(out, "at", mount.at);
    out->Field("mode", MountModeName(mount.mode));
    if (mount.cache_bytes != 0) out->Field("cache_bytes", mount.cache_bytes);
    if (!mount.mounter.empty()) WriteBytes(out, "mounter", mount.mounter);
    if (!mount.options.empty()) {
      out->Key("options").BeginArray();
      for (const std::string& option : mount.options) WriteBytes(out, option);
      out->EndArray();
    }
    WriteAccess(out, mount.access);
    out->EndObject();
  }
  out->EndArray();
}

Result<std::vector<MountSpec>> ReadMounts(const Json& items) {
  std::vector<MountSpec> mounts;
  for (const Json& item : items) {
    OC_TRY(mount, ReadMount(item));
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace overcap
