// SPDX-License-Identifier: Apache-2.0
#include "control/workspace.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/json_fields.h"
#include "snapshot/format/snapshot_record.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::string_view kFormat = "overcap workspace";
constexpr int64_t kVersion = 1;
constexpr std::string_view kFile = "/workspace.json";
constexpr std::array<std::string_view, 3> kSecrets = {"none", "key_file", "passphrase"};

void WriteList(JsonWriter* json, std::string_view key, const std::vector<std::string>& values) {
  json->Key(key).BeginArray();
  for (const std::string& value : values) WriteBytes(json, value);
  json->EndArray();
}

std::string SafeHost(std::string_view host) {
  std::string safe(host.substr(0, 200));
  for (char& c : safe) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || (c == '.' && &c != safe.data());
    if (!plain) c = '_';
  }
  return safe.empty() ? "_" : safe;
}

Result<void> CheckHead(FieldReader* reader, const std::string& file) {
  std::string format;
  int64_t version = 0;
  reader->Read("format", &format);
  reader->Read("version", &version);
  OC_TRY_VOID(reader->Check());
  if (format != kFormat || version < 1)
    return Fail(ErrorCode::kCorrupt, StrCat("'", file, "' does not describe a workspace"));
  if (version > kVersion) {
    return Fail(ErrorCode::kConflict,
                StrCat("'", file, "' was written by a newer Overcap (format ", version, ")"),
                "update this Overcap");
  }
  return {};
}

}  // namespace

std::string WorkspaceToJson(const Workspace& workspace) {
  JsonWriter json;
  json.BeginObject().Field("format", kFormat).Field("version", kVersion);
  json.Field("name", workspace.name).Field("id", workspace.id);
  WriteBytes(&json, "at", workspace.at);
  json.Field("env", workspace.env);
  WriteList(&json, "setup", workspace.setup);
  WriteBytes(&json, "store", workspace.store);
  json.Field("secret", kSecrets[static_cast<size_t>(workspace.secret)]);
  WriteBytes(&json, "key_file", workspace.key_file);
  WriteList(&json, "exclude", workspace.exclude);
  json.Field("created_us", workspace.created_us);
  WriteBytes(&json, "host", workspace.host);
  WriteBytes(&json, "user", workspace.user);
  return json.EndObject().Take() + "\n";
}

Result<Workspace> WorkspaceFromJson(std::string_view text, const std::string& file) {
  const std::string what = StrCat("'", file, "'");
  OC_TRY(json, ParseJsonObject(text, what));
  FieldReader reader(json, what);
  OC_TRY_VOID(CheckHead(&reader, file));
  Workspace workspace;
  std::string secret = "none";
  reader.Read("name", &workspace.name);
  reader.Read("id", &workspace.id);
  reader.Read("at", &workspace.at);
  reader.Read("env", &workspace.env);
  reader.Read("setup", &workspace.setup);
  reader.Read("store", &workspace.store);
  reader.Read("secret", &secret);
  reader.Read("key_file", &workspace.key_file);
  reader.Read("exclude", &workspace.exclude);
  reader.Read("created_us", &workspace.created_us);
  reader.Read("host", &workspace.host);
  reader.Read("user", &workspace.user);
  const auto found = std::ranges::find(kSecrets, secret);
  if (found == kSecrets.end()) reader.Bad("secret", "known");
  if (workspace.id.empty()) reader.Bad("id", "there");
  if (workspace.at.empty()) reader.Bad("at", "there");
  if (workspace.store.empty()) reader.Bad("store", "there");
  OC_TRY_VOID(reader.Check());
  workspace.secret = static_cast<WorkspaceSecret>(found - kSecrets.begin());
  return workspace;
}

std::string WorkspacePlaceToJson(const WorkspacePlace& place) {
  JsonWriter json;
  json.BeginObject();
  WriteBytes(&json, "host", place.host);
  WriteBytes(&json, "folder", place.folder);
  json.Field("snapshot", place.snapshot).Field("time_us", place.time_us);
  return json.EndObject().Take() + "\n";
}

Result<WorkspacePlace> WorkspacePlaceFromJson(std::string_view text, const std::string& file) {
  const std::string what = StrCat("'", file, "'");
  OC_TRY(json, ParseJsonObject(text, what));
  FieldReader reader(json, what);
  WorkspacePlace place;
  reader.Read("host", &place.host);
  reader.Read("folder", &place.folder);
  reader.Read("snapshot", &place.snapshot);
  reader.Read("time_us", &place.time_us);
  OC_TRY_VOID(reader.Check());
  return place;
}

std::string WorkspaceBook::FolderOf(std::string_view name) const {
  return StrCat(root_, "/workspaces/", name);
}

std::string WorkspaceBook::PlaceFile(std::string_view name, std::string_view host) const {
  return StrCat(FolderOf(name), "/places/", SafeHost(host), ".json");
}

Result<void> WorkspaceBook::Add(const Workspace& workspace) {
  OC_TRY_VOID(ValidWorkspaceName(workspace.name));
  PosixFiles files;
  const std::string folder = FolderOf(workspace.name);
  OC_TRY_VOID(files.MakeFolders(folder));
  auto made = files.CreateExclusive(StrCat(folder, kFile), WorkspaceToJson(workspace));
  if (made || made.error().code != ErrorCode::kConflict) return made;
  return Fail(ErrorCode::kConflict, StrCat("there is a workspace '", workspace.name, "' already"),
              StrCat("'overcap workspace init ", workspace.name, "' brings it here"));
}

Result<Workspace> WorkspaceBook::Find(std::string_view name) const {
  OC_TRY_VOID(ValidWorkspaceName(name));
  const std::string file = StrCat(FolderOf(name), kFile);
  auto text = PosixFiles().Read(file);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    const std::string near = Nearest(name, Names());
    return Fail(ErrorCode::kNotFound, StrCat("there is no workspace '", name, "'"),
                near.empty() ? "'overcap workspace list' shows all" : StrCat("did you mean '", near, "'?"));
  }
  if (!text) return Fail(text.error());
  OC_TRY(workspace, WorkspaceFromJson(*text, file));
  if (workspace.name != name)
    return Fail(ErrorCode::kCorrupt, StrCat("'", file, "' is of the workspace ", Quoted(workspace.name)));
  workspace.root = root_;
  return workspace;
}

std::vector<std::string> WorkspaceBook::Names() const {
  PosixFiles files;
  std::vector<std::string> names;
  const auto all = files.List(root_ + "/workspaces");
  for (const std::string& name : all ? *all : std::vector<std::string>()) {
    if (ValidWorkspaceName(name) && files.Exists(StrCat(FolderOf(name), kFile))) names.push_back(name);
  }
  return names;
}

Result<void> WorkspaceBook::Remove(std::string_view name) {
  OC_TRY_VOID(ValidWorkspaceName(name));
  return PosixFiles().RemoveTree(FolderOf(name));
}

void WorkspaceBook::NotePlace(std::string_view name, const WorkspacePlace& place) {
  PosixFiles files;
  if (!files.MakeFolders(FolderOf(name) + "/places")) return;
  (void)files.WriteAtomic(PlaceFile(name, place.host), WorkspacePlaceToJson(place), false);
}

std::optional<WorkspacePlace> WorkspaceBook::FindPlace(std::string_view name, std::string_view host) const {
  const std::string file = PlaceFile(name, host);
  const auto text = PosixFiles().Read(file);
  auto place = text ? WorkspacePlaceFromJson(*text, file) : Result<WorkspacePlace>(Fail(text.error()));
  if (!place || place->host != host || !place->folder.starts_with('/')) return std::nullopt;
  return std::move(*place);
}

std::vector<WorkspacePlace> WorkspaceBook::Places(std::string_view name) const {
  PosixFiles files;
  std::vector<WorkspacePlace> places;
  const std::string folder = FolderOf(name) + "/places";
  const auto all = files.List(folder);
  for (const std::string& entry : all ? *all : std::vector<std::string>()) {
    const std::string file = StrCat(folder, "/", entry);
    const auto text = files.Read(file);
    auto place = text ? WorkspacePlaceFromJson(*text, file) : Result<WorkspacePlace>(Fail(text.error()));
    if (place) places.push_back(std::move(*place));
  }
  std::ranges::sort(places, [](const auto& a, const auto& b) { return a.time_us > b.time_us; });
  return places;
}

std::string SharedRepositoryOf(const std::string& root) {
  return root + "/store";
}

}  // namespace overcap
