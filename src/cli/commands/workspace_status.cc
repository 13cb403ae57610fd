// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "control/workspace_auto.h"
#include "control/workspace_look.h"

namespace overcap::cli {
namespace {

void WriteSnapshot(JsonWriter* json, std::string_view key, const std::optional<NamedSnapshot>& snapshot) {
  json->Key(key);
  if (!snapshot) {
    json->Null();
    return;
  }
  json->BeginObject().Field("id", snapshot->Id()).Field("host", snapshot->record.host);
  json->Field("time", FormatTimeUtc(ClockOf(snapshot->record))).Field("unread", snapshot->record.unread);
  json->EndObject();
}

// What saves it by itself, on all nodes.
struct ServiceSeen {
  AutoState state;
  AutoLife life;
};
std::vector<ServiceSeen> ServicesOf(World& world, const OpenedWorkspace& opened) {
  std::vector<ServiceSeen> services;
  const Workspace& workspace = opened.found.workspace;
  for (AutoState& state : ReadAutoStates(workspace.root, workspace.name)) {
    const AutoLife life = LifeOf(state, opened.workspaces.host, world.clock().WallUs());
    services.push_back({std::move(state), life});
  }
  return services;
}

std::string JsonOf(const WorkspaceStatus& status, const std::vector<ServiceSeen>& services) {
  const Workspace& workspace = status.found.workspace;
  JsonWriter json;
  json.BeginObject().Field("name", workspace.name).Field("folder", status.found.folder);
  json.Field("here", status.found.copy.has_value());
  json.Field("restoring", status.found.copy && !status.found.copy->restoring.empty());
  json.Field("snapshots", status.snapshots);
  WriteSnapshot(&json, "newest", status.newest);
  WriteSnapshot(&json, "base", status.base);
  json.Field("base_gone", status.base_gone);
  json.Key("changes");
  if (status.changes) {
    json.BeginObject().Field("added", status.changes->added).Field("removed", status.changes->removed);
    json.Field("changed", status.changes->changed).EndObject();
  } else {
    json.Null();
  }
  json.Field("busy", status.busy.value_or("")).Field("env", workspace.env).Field("store", workspace.store);
  json.Field("encrypted", workspace.secret != WorkspaceSecret::kNone).Field("exclude", workspace.exclude);
  json.Key("places").BeginArray();
  for (const WorkspacePlace& place : status.places) {
    json.BeginObject().Field("host", place.host).Field("folder", place.folder);
    json.Field("snapshot", place.snapshot).Field("time", FormatTimeUtc(place.time_us)).EndObject();
  }
  json.EndArray().Key("auto").BeginArray();
  for (const ServiceSeen& service : services) {
    json.BeginObject();
    WriteAutoFields(service.state, service.life, &json);
    json.EndObject();
  }
  return json.EndArray().EndObject().Take();
}

std::string FolderWords(const WorkspaceStatus& status) {
  const auto& copy = status.found.copy;
  std::string folder = ToUtf8(status.found.folder);
  if (!copy)
    return StrCat(folder, ", not on this node; 'overcap workspace init ", status.found.workspace.name, "'");
  if (!copy->restoring.empty()) return folder + ", restored in part; 'overcap workspace init' goes on";
  return folder;
}

std::string ChangeWords(const CompareReport& changes, int64_t now_us) {
  if (changes.Same()) return "none: all is saved";
  std::vector<std::string> parts;
  if (changes.added > 0) parts.push_back(StrCat(changes.added, " new"));
  if (changes.changed > 0) parts.push_back(StrCat(changes.changed, " changed"));
  if (changes.removed > 0) parts.push_back(StrCat(changes.removed, " removed"));
  std::string text = Join(parts, ", ");
  if (changes.newest_mtime_ns > 0) text += StrCat("; the last ", Ago(changes.newest_mtime_ns / 1000, now_us));
  return text + ": " + SomeOf(changes.differences);
}

void PrintText(World& world, const WorkspaceStatus& status, const std::vector<ServiceSeen>& services) {
  Output& out = world.out();
  const int64_t now_us = world.clock().WallUs();
  const Workspace& workspace = status.found.workspace;
  const auto line = [&](std::string_view title, std::string_view text) {
    std::string padded(title);
    padded.resize(12, ' ');
    out.Line(StrCat(out.Paint(Style::kDim, padded), text));
  };
  line("workspace", out.Paint(Style::kBold, workspace.name));
  line("folder", FolderWords(status));
  if (status.newest) {
    const SnapshotRecord& record = status.newest->record;
    line("newest", StrCat(SnapshotWords(*status.newest, now_us), ", on ", ToUtf8(record.host), ", ",
                          CountOf(record.files, "file"), ", ", FormatBytes(record.bytes),
                          record.unread > 0 ? StrCat(", ", record.unread, " could not be read") : ""));
  } else {
    line("newest", "none");
  }
  if (status.base_gone && status.found.copy->restoring.empty()) {
    line("has", StrCat(status.found.copy->base.substr(0, 10),
                       ", which is gone: what the newest does not have counts as not saved"));
  }
  if (status.base && status.newest && status.base->Id() != status.newest->Id())
    line("has", StrCat(SnapshotWords(*status.base, now_us), ": the newest was taken elsewhere"));
  if (status.changes) line("changes", ChangeWords(*status.changes, now_us));
  if (!status.problem.empty()) line("changes", StrCat("not known: ", status.problem));
  if (status.busy) line("busy", *status.busy);
  for (const ServiceSeen& service : services) {
    for (const std::string& text : AutoLines(service.state, service.life, now_us)) line("auto", text);
  }
  line("snapshots", StrCat(status.snapshots, " in ", ToUtf8(workspace.store),
                           workspace.secret == WorkspaceSecret::kNone ? "" : ", encrypted"));
  for (const WorkspacePlace& place : status.places) {
    line("on", StrCat(ToUtf8(place.host), ": ", ToUtf8(place.folder), ", snapshot ",
                      place.snapshot.substr(0, 10), ", ", Ago(place.time_us, now_us)));
  }
}

Result<int> RunWorkspaceStatus(World& world, const Args& args) {
  OC_TRY(opened, OpenWorkspace(world, args.words().empty() ? "" : args.words()[0]));
  OC_TRY(status, LookAtWorkspace(opened.found, opened.repository));
  const std::vector<ServiceSeen> services = ServicesOf(world, opened);
  if (world.out().json()) {
    world.out().Json(JsonOf(status, services));
  } else {
    PrintText(world, status, services);
  }
  return 0;
}

}  // namespace

constinit const Command kWorkspaceStatus = {
    .name = "workspace status",
    .summary = "what a workspace has here, what is not saved yet, where else it is",
    .usage = "[NAME]",
    .max_words = 1,
    .run = RunWorkspaceStatus,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
