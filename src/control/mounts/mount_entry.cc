// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/mount_entry.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"

namespace overcap {
namespace {

constexpr std::string_view kFields[] = {"store", "at", "mode", "cache", "mounter", "options"};
constexpr std::string_view kFlagKeys[] = {"store", "at", "mode", "cache", "mounter", "option"};

bool IsLine(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7F; });
}

Result<void> SetOptions(const std::string& value, MountEntry* entry) {
  auto words = SplitWords(value);
  if (!words) return Fail(ErrorCode::kUsage, StrCat("'options': a quote is not closed in ", Quoted(value)));
  entry->options = std::move(*words);
  return {};
}

Result<void> SetMode(const std::string& value, MountEntry* entry) {
  const auto mode = MountModeFromName(value);
  if (!mode)
    return Fail(ErrorCode::kUsage, StrCat("'mode' must be ro, rw, copy or copy-ro, not ", Quoted(value)));
  entry->mode = *mode;
  entry->mode_said = true;
  return {};
}

Result<void> SetCache(const std::string& value, MountEntry* entry) {
  const auto bytes = ParseBytes(value);
  if (!bytes) return Fail(ErrorCode::kUsage, StrCat("'cache' must be a size like 50G, not ", Quoted(value)));
  entry->cache_bytes = *bytes;
  return {};
}

// Where the next ",KEY=" of a known key begins; npos: nowhere.
size_t NextKey(std::string_view text, size_t from) {
  for (size_t comma = text.find(',', from); comma != std::string_view::npos;
       comma = text.find(',', comma + 1)) {
    const std::string_view rest = text.substr(comma + 1);
    for (const std::string_view key : kFlagKeys) {
      if (rest.starts_with(key) && rest.substr(key.size()).starts_with('=')) return comma;
    }
  }
  return std::string_view::npos;
}

// A key that is only nearly one stays part of the text before it, and was hardly meant to.
Result<void> CheckNoTypo(std::string_view text) {
  const std::vector<std::string> keys{std::begin(kFlagKeys), std::end(kFlagKeys)};
  for (size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',', comma + 1)) {
    const std::string_view rest = text.substr(comma + 1);
    const std::string word(rest.substr(0, rest.find_first_of(",=")));
    const std::string nearest = rest.substr(word.size()).starts_with('=') ? Nearest(word, keys) : "";
    if (!nearest.empty())
      return Fail(ErrorCode::kUsage, StrCat("unknown key ", Quoted(word)),
                  StrCat("did you mean '", nearest, "'? A location with ',", word,
                         "=' in it can be given a name in 'stores:'"));
  }
  return {};
}

Result<void> SetFlagPart(const std::string& part, MountEntry* entry) {
  const size_t equals = part.find('=');
  const std::string key = part.substr(0, equals), value = part.substr(equals + 1);
  if (key != "option") return SetMountField(key, value, entry);
  if (!IsLine(value)) return Fail(ErrorCode::kUsage, "'option' must be a word on one line");
  entry->options.push_back(value);
  return {};
}

}  // namespace

std::vector<std::string> MountFieldNames() {
  return {std::begin(kFields), std::end(kFields)};
}

void SetMountOptions(std::vector<std::string> words, MountEntry* entry) {
  entry->options = std::move(words);
}

Result<void> SetMountField(const std::string& field, const std::string& value, MountEntry* entry) {
  const std::vector<std::string> names = MountFieldNames();
  if (std::ranges::find(names, field) == names.end()) {
    const std::string nearest = Nearest(field, names);
    return Fail(
        ErrorCode::kUsage, StrCat("unknown key ", Quoted(field)),
        nearest.empty() ? StrCat("one of: ", Join(names, ", ")) : StrCat("did you mean '", nearest, "'?"));
  }
  if (!IsLine(value)) return Fail(ErrorCode::kUsage, StrCat("'", field, "' must be a text on one line"));
  if (field == "mode") return SetMode(value, entry);
  if (field == "cache") return SetCache(value, entry);
  if (field == "options") return SetOptions(value, entry);
  (field == "store" ? entry->store : field == "at" ? entry->at : entry->mounter) = value;
  return {};
}

std::vector<MountField> MountFields(const MountEntry& entry) {
  std::vector<MountField> fields = {{"store", entry.store}};
  if (!entry.at.empty()) fields.push_back({"at", entry.at});
  if (entry.mode_said) fields.push_back({"mode", std::string(MountModeName(entry.mode))});
  if (entry.cache_bytes != 0) fields.push_back({"cache", FormatBytes(entry.cache_bytes)});
  if (!entry.mounter.empty()) fields.push_back({"mounter", entry.mounter});
  if (!entry.options.empty()) fields.push_back({"options", ShellJoin(entry.options)});
  return fields;
}

Result<MountSpec> CheckedMount(const std::string& name, const MountEntry& entry) {
  MountSpec mount;
  mount.name = name;
  mount.store = entry.store.empty() ? name : entry.store;
  mount.at = entry.at.empty() ? name : entry.at;
  mount.mode = entry.mode;
  mount.cache_bytes = entry.cache_bytes;
  mount.mounter = entry.mounter;
  mount.options = entry.options;
  OC_TRY_VOID(CheckMount(mount));
  return mount;
}

Result<NamedMount> ParseMountFlag(const std::string& text) {
  NamedMount mount;
  mount.entry.where = "--mount";
  size_t end = NextKey(text, 0);
  const std::string first = text.substr(0, end);
  const size_t equals = first.find('=');
  mount.name = first.substr(0, equals);
  if (equals != std::string::npos) mount.entry.store = first.substr(equals + 1);
  if (equals != std::string::npos && mount.entry.store.empty())
    return Fail(ErrorCode::kUsage, StrCat("no store behind '=' in ", Quoted(text, 200)),
                "--mount data=s3://bucket/prefix,at=data,mode=ro");
  OC_TRY_VOID(CheckNoTypo(first));
  while (end != std::string::npos) {
    const size_t next = NextKey(text, end + 1);
    const std::string part = text.substr(end + 1, next == std::string::npos ? next : next - end - 1);
    if (!part.starts_with("option=")) OC_TRY_VOID(CheckNoTypo(part));
    OC_TRY_VOID(SetFlagPart(part, &mount.entry));
    end = next;
  }
  OC_TRY_VOID(CheckedMount(mount.name, mount.entry));
  return mount;
}

}  // namespace overcap
