// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/posix_acl_text.h"

#include <algorithm>
#include <array>
#include <grp.h>
#include <pwd.h>
#include <vector>

#include "base/text.h"

namespace overcap {
namespace {

// As linux/posix_acl_xattr.h: version 2, then {tag, permissions, id}, by tag and id.
constexpr uint32_t kVersion = 2, kNoId = 0xffffffff;
constexpr uint16_t kUserObj = 0x01, kUser = 0x02, kGroupObj = 0x04, kGroup = 0x08, kMask = 0x10,
                   kOther = 0x20;
constexpr size_t kEntrySize = 8, kMostEntries = 8192;

struct AclEntry {
  uint16_t tag = 0, permissions = 0;
  uint32_t id = kNoId;
  bool operator<(const AclEntry& other) const { return tag != other.tag ? tag < other.tag : id < other.id; }
};

void PutLittle(uint32_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t GetLittle(std::string_view bytes, size_t offset, int count) {
  uint32_t value = 0;
  for (int i = count; i-- > 0;)
    value = (value << 8) | static_cast<uint8_t>(bytes[offset + static_cast<size_t>(i)]);
  return value;
}

std::optional<uint16_t> ParsePermissions(std::string_view text) {
  uint16_t value = 0;
  for (const char c : text) {
    if (c == 'r')
      value |= 4;
    else if (c == 'w')
      value |= 2;
    else if (c == 'x')
      value |= 1;
    else if (c != '-')
      return std::nullopt;
  }
  return value;
}

std::optional<uint32_t> ParseId(std::string_view text) {
  const auto number = ParseInt(text);
  if (!number || *number < 0 || *number >= kNoId) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

std::optional<AclEntry> ParseEntry(std::string_view text, const FindAclId& find) {
  const std::vector<std::string> words = Split(text, ':');
  if (words.size() < 3 || words.size() > 4) {
    // "mask:r--" and "other:r--" are allowed too.
    if (words.size() != 2 || (words[0][0] != 'm' && words[0][0] != 'o')) return std::nullopt;
  }
  const std::string& word = words[0];
  const std::string& who = words.size() == 2 ? std::string() : words[1];
  const auto permissions = ParsePermissions(Trim(words[words.size() == 2 ? 1 : 2]));
  if (!permissions) return std::nullopt;
  const bool user = word == "user" || word == "u", group = word == "group" || word == "g";
  if (word == "mask" || word == "m") return AclEntry{kMask, *permissions, kNoId};
  if (word == "other" || word == "o") return AclEntry{kOther, *permissions, kNoId};
  if (!user && !group) return std::nullopt;
  if (who.empty()) return AclEntry{user ? kUserObj : kGroupObj, *permissions, kNoId};
  std::optional<uint32_t> id = words.size() == 4 ? ParseId(words[3]) : std::nullopt;
  if (!id) id = ParseId(who);
  if (!id) id = find(who, group);
  if (!id) return std::nullopt;
  return AclEntry{user ? kUser : kGroup, *permissions, *id};
}

std::string_view TagWord(uint16_t tag) {
  if (tag == kUserObj || tag == kUser) return "user";
  if (tag == kGroupObj || tag == kGroup) return "group";
  if (tag == kMask) return "mask";
  return tag == kOther ? "other" : "";
}

}  // namespace

std::optional<std::string> AclTextToXattr(std::string_view text, const FindAclId& find) {
  std::vector<AclEntry> entries;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(",\n"), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    one = Trim(one.substr(0, one.find('#')));
    if (one.empty()) continue;
    const auto entry = ParseEntry(one, find);
    if (!entry || entries.size() == kMostEntries) return std::nullopt;
    entries.push_back(*entry);
  }
  if (entries.empty()) return std::nullopt;
  std::sort(entries.begin(), entries.end());
  std::string value;
  PutLittle(kVersion, 4, &value);
  for (const AclEntry& entry : entries) {
    PutLittle(entry.tag, 2, &value);
    PutLittle(entry.permissions, 2, &value);
    PutLittle(entry.id, 4, &value);
  }
  return value;
}

std::optional<std::string> AclXattrToText(std::string_view value) {
  if (value.size() < 4 || (value.size() - 4) % kEntrySize != 0 || GetLittle(value, 0, 4) != kVersion) {
    return std::nullopt;
  }
  std::string text;
  for (size_t at = 4; at < value.size(); at += kEntrySize) {
    const auto tag = static_cast<uint16_t>(GetLittle(value, at, 2));
    const uint32_t permissions = GetLittle(value, at + 2, 2), id = GetLittle(value, at + 4, 4);
    const std::string_view word = TagWord(tag);
    if (word.empty() || permissions > 7) return std::nullopt;
    if (!text.empty()) text.push_back(',');
    text.append(word).append(":");
    if (tag == kUser || tag == kGroup) text.append(std::to_string(id));
    text.append(":").append((permissions & 4) != 0 ? "r" : "-");
    text.append((permissions & 2) != 0 ? "w" : "-").append((permissions & 1) != 0 ? "x" : "-");
  }
  if (text.empty()) return std::nullopt;
  return text;
}

std::optional<uint32_t> FindAclIdHere(std::string_view name, bool group) {
  const std::string text(name);
  std::array<char, 16'384> buffer;
  if (group) {
    struct group entry {
    }, *found = nullptr;
    if (getgrnam_r(text.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return {};
    return found->gr_gid;
  }
  passwd entry{}, *found = nullptr;
  if (getpwnam_r(text.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return {};
  return found->pw_uid;
}

}  // namespace overcap
