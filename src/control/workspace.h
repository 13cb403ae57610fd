// SPDX-License-Identifier: Apache-2.0
// <root>/workspaces: which workspaces there are (docs/formats/workspaces.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

enum class WorkspaceSecret { kNone, kKeyFile, kPassphrase };

struct Workspace {
  std::string name;
  std::string id;  // 32 hex digits
  std::string at;  // as written; WorkspaceFolderOf() says where that is on this host
  std::string env = "none";
  std::vector<std::string> setup;
  std::string store;  // of its repository
  WorkspaceSecret secret = WorkspaceSecret::kNone;
  std::string key_file;  // as written
  std::vector<std::string> exclude;
  int64_t created_us = 0;
  std::string host, user;

  std::string root;  // where it is registered; not in the file

  bool operator==(const Workspace&) const = default;
};

std::string WorkspaceToJson(const Workspace& workspace);
// kConflict for a newer version; kCorrupt for anything else that is none. `file` is for messages.
Result<Workspace> WorkspaceFromJson(std::string_view json, const std::string& file);

// Where a workspace stands on one host.
struct WorkspacePlace {
  std::string host;
  std::string folder;
  std::string snapshot;  // the newest that was taken or restored there
  int64_t time_us = 0;

  bool operator==(const WorkspacePlace&) const = default;
};

std::string WorkspacePlaceToJson(const WorkspacePlace& place);
Result<WorkspacePlace> WorkspacePlaceFromJson(std::string_view json, const std::string& file);

class WorkspaceBook {
 public:
  explicit WorkspaceBook(std::string root) : root_(std::move(root)) {}

  const std::string& root() const { return root_; }
  std::string FolderOf(std::string_view name) const;  // <root>/workspaces/<name>
  // kConflict when the name is taken; exactly one of several callers wins.
  Result<void> Add(const Workspace& workspace);
  // kNotFound when there is none; other errors as WorkspaceFromJson.
  Result<Workspace> Find(std::string_view name) const;
  std::vector<std::string> Names() const;  // sorted, those that cannot be read too
  Result<void> Remove(std::string_view name);

  // Fine when it cannot be written: places are only told.
  void NotePlace(std::string_view name, const WorkspacePlace& place);
  std::optional<WorkspacePlace> FindPlace(std::string_view name, std::string_view host) const;
  std::vector<WorkspacePlace> Places(std::string_view name) const;  // newest first

 private:
  std::string PlaceFile(std::string_view name, std::string_view host) const;

  std::string root_;
};

// <root>/store, where the code of jobs is too.
std::string SharedRepositoryOf(const std::string& root);

}  // namespace overcap
