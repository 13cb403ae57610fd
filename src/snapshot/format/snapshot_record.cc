// SPDX-License-Identifier: Apache-2.0
#include "snapshot/format/snapshot_record.h"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "snapshot/format/json_members.h"
#include "snapshot/format/key_time.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "overcap snapshot", kFolder = "snapshots/";
constexpr int64_t kVersion = 2;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

bool IsWorkspaceName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), IsNameByte);
}

// Numbers and texts that are missing are 0 and "": a record says at least what it is of.
bool ReadRecord(const JsonMembers& json, SnapshotRecord* record) {
  std::string tree;
  const bool whole = json.Read("tree", &tree) && json.Read("workspace", &record->workspace) &&
                     json.Read("time_us", &record->time_us);
  const bool sound =
      json.ReadIfThere("clock_us", &record->clock_us) && json.ReadIfThere("host", &record->host) &&
      json.ReadIfThere("folder", &record->folder) && json.ReadIfThere("user", &record->user) &&
      json.ReadIfThere("message", &record->message) && json.ReadIfThere("parent", &record->parent) &&
      json.ReadIfThere("entries", &record->entries) && json.ReadIfThere("files", &record->files) &&
      json.ReadIfThere("bytes", &record->bytes) && json.ReadIfThere("new_bytes", &record->new_bytes) &&
      json.ReadIfThere("stored_bytes", &record->stored_bytes) &&
      json.ReadIfThere("unread", &record->unread) && json.ReadIfThere("unsteady", &record->unsteady) &&
      json.ReadIfThere("program", &record->program);
  const std::optional<Digest> id = Digest::FromHex(tree);
  if (id) record->tree = *id;
  return whole && sound && id && IsWorkspaceName(record->workspace) &&
         (record->parent.empty() || Digest::FromHex(record->parent));
}

}  // namespace

std::string EncodeSnapshotRecord(const SnapshotRecord& record) {
  JsonWriter json;
  json.BeginObject().Field("format", kFormat).Field("version", kVersion).Field("tree", record.tree.Hex());
  json.Field("workspace", record.workspace).Field("time_us", record.time_us);
  if (record.clock_us != 0) json.Field("clock_us", record.clock_us);
  json.Field("host", record.host);
  json.Field("folder", record.folder).Field("user", record.user).Field("message", record.message);
  json.Field("parent", record.parent).Field("entries", record.entries).Field("files", record.files);
  json.Field("bytes", record.bytes).Field("new_bytes", record.new_bytes);
  json.Field("stored_bytes", record.stored_bytes).Field("unread", record.unread);
  json.Field("unsteady", record.unsteady).Field("program", record.program).EndObject();
  return json.Take() + "\n";
}

Result<SnapshotRecord> DecodeSnapshotRecord(std::string_view json, std::string_view name) {
  const std::string what = StrCat("snapshot ", Quoted(name, 200));
  OC_TRY(members, JsonMembers::Parse(json, kFormat, kVersion, what));
  SnapshotRecord record;
  if (!ReadRecord(members, &record)) return Fail(ErrorCode::kCorrupt, StrCat(what, " is damaged"));
  return record;
}

std::string SnapshotKey::Text() const {
  return StrCat(kFolder, workspace, "/", KeyTimeText(time_us), "-", id.Hex());
}

std::optional<SnapshotKey> ParseSnapshotKey(std::string_view key) {
  if (!key.starts_with(kFolder)) return std::nullopt;
  key.remove_prefix(kFolder.size());
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos || !IsWorkspaceName(key.substr(0, slash))) return std::nullopt;
  const std::string_view name = key.substr(slash + 1);
  const size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<int64_t> time_us = ParseKeyTime(name.substr(0, dash));
  const std::optional<Digest> id = Digest::FromHex(name.substr(dash + 1));
  if (!time_us || !id) return std::nullopt;
  return SnapshotKey{std::string(key.substr(0, slash)), *time_us, *id};
}

Result<void> ValidWorkspaceName(std::string_view name) {
  if (IsWorkspaceName(name)) return {};
  return Fail(ErrorCode::kUsage, StrCat(Quoted(name), " cannot be the name of a workspace"),
              "use 1 to 64 letters, digits, '.', '_' and '-', beginning with neither '.' nor '-'");
}

}  // namespace overcap
