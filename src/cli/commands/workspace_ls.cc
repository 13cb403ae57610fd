// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "cli/table.h"
#include "control/workspace_contents.h"

namespace overcap::cli {
namespace {

constexpr Flag kWorkspaceLsFlags[] = {
    {"--recursive", "-R", "", "all that is below, too"},
    kWorkspaceNameFlag,
};

std::string SnapshotJson(const NamedSnapshot& snapshot) {
  const SnapshotRecord& record = snapshot.record;
  JsonWriter json;
  json.BeginObject().Field("id", snapshot.Id()).Field("time", FormatTimeUtc(ClockOf(record)));
  json.Field("workspace", record.workspace).Field("host", record.host).Field("user", record.user);
  json.Field("folder", record.folder).Field("message", record.message).Field("parent", record.parent);
  json.Field("tree", record.tree.Hex()).Field("entries", record.entries).Field("files", record.files);
  json.Field("bytes", record.bytes).Field("new_bytes", record.new_bytes);
  json.Field("stored_bytes", record.stored_bytes).Field("unread", record.unread);
  return json.Field("unsteady", record.unsteady).EndObject().Take();
}

Result<int> ListSnapshots(World& world, const OpenedWorkspace& opened) {
  Output& out = world.out();
  std::vector<std::string> damage;
  OC_TRY(snapshots, opened.repository.Snapshots(opened.found.workspace.name, &damage));
  for (const std::string& line : damage) out.Warn(line);
  if (out.json()) {
    std::vector<std::string> rows;
    for (const NamedSnapshot& snapshot : snapshots) rows.push_back(SnapshotJson(snapshot));
    out.Json(StrCat("[", Join(rows, ",\n"), "]"));
    return damage.empty() ? 0 : ExitStatus(ErrorCode::kCorrupt);
  }
  const int64_t now_us = world.clock().WallUs();
  Table table({{"SNAPSHOT"},
               {"TIME"},
               {"AGE", true},
               {"HOST"},
               {"FILES", true},
               {"SIZE", true},
               {"NEW", true},
               {"UNREAD", true},
               {"MESSAGE", false, true}});
  for (const NamedSnapshot& snapshot : snapshots) {
    const SnapshotRecord& record = snapshot.record;
    table.AddRow({snapshot.ShortId(), FormatTimeLocal(ClockOf(record)), Ago(ClockOf(record), now_us),
                  record.host, StrCat(record.files), FormatBytes(record.bytes), FormatBytes(record.new_bytes),
                  record.unread > 0 ? StrCat(record.unread) : "", record.message},
                 {Style::kBold});
  }
  if (snapshots.empty()) {
    out.Note(StrCat("workspace '", opened.found.workspace.name, "' has no snapshot"));
  } else {
    out.Print(table);
  }
  return damage.empty() ? 0 : ExitStatus(ErrorCode::kCorrupt);
}

std::string ModeText(const SnapshotEntry& entry) {
  const char type = entry.type == SnapshotEntryType::kFolder    ? 'd'
                    : entry.type == SnapshotEntryType::kSymlink ? 'l'
                                                                : '-';
  std::string text(1, type);
  for (int shift = 6; shift >= 0; shift -= 3) {
    const uint32_t bits = entry.mode >> shift;
    text += bits & 4 ? 'r' : '-';
    text += bits & 2 ? 'w' : '-';
    text += bits & 1 ? 'x' : '-';
  }
  return text;
}

std::string EntryLine(const SnapshotEntry& entry) {
  std::string size = entry.IsFile() ? FormatBytes(entry.size) : "";
  size.insert(0, size.size() < 10 ? 10 - size.size() : 0, ' ');
  std::string line = StrCat(ModeText(entry), "  ", size, "  ", FormatTimeLocal(entry.mtime_ns / 1000), "  ",
                            ToUtf8(entry.path));
  if (entry.type == SnapshotEntryType::kFolder) line += '/';
  if (entry.type == SnapshotEntryType::kSymlink) line += StrCat(" -> ", ToUtf8(entry.target));
  return line;
}

std::string EntryJson(const SnapshotEntry& entry) {
  JsonWriter json;
  json.BeginObject().Field("path", entry.path);
  json.Field("type", std::string_view(reinterpret_cast<const char*>(&entry.type), 1));
  json.Field("mode", entry.mode).Field("uid", entry.uid).Field("gid", entry.gid);
  json.Field("mtime_ns", entry.mtime_ns).Field("size", entry.size).Field("target", entry.target);
  return json.EndObject().Take();
}

bool IsWorkspace(const OpenedWorkspace& opened, const std::string& name) {
  const std::vector<std::string>& roots = opened.workspaces.roots;
  return std::any_of(roots.begin(), roots.end(),
                     [&](const std::string& root) { return WorkspaceBook(root).Find(name).has_value(); });
}

// Line by line: a million entries are never in memory at once.
Result<int> ListEntries(World& world, const OpenedWorkspace& opened, const Args& args) {
  Output& out = world.out();
  const std::vector<std::string>& words = args.words();
  auto snapshot = opened.repository.Find(opened.found.workspace.name, words[0]);
  if (!snapshot && snapshot.error().code == ErrorCode::kNotFound && IsWorkspace(opened, words[0]))
    snapshot.error().hint =
        StrCat("'overcap workspace ls --name ", words[0], "' lists those of the workspace");
  if (!snapshot) return Fail(snapshot.error());
  std::string path;
  if (words.size() > 1) {
    OC_TRY(typed, PathInWorkspace(words[1], opened.found.folder, opened.workspaces.folder));
    path = std::move(typed);
  }
  OC_TRY(contents, SnapshotContents::Open(opened.repository));
  bool first = true;
  const auto print = [&](const SnapshotEntry& entry) -> Result<void> {
    if (out.json()) {
      out.Write(StrCat(first ? "[" : ",\n", EntryJson(entry)));
    } else {
      out.Line(EntryLine(entry));
    }
    first = false;
    return {};
  };
  OC_TRY_VOID(contents.List(*snapshot, path, args.Has("--recursive"), print));
  if (out.json()) out.Line(first ? "[]" : "]");
  return 0;
}

Result<int> RunWorkspaceLs(World& world, const Args& args) {
  OC_TRY(opened, OpenWorkspace(world, args.Get("--name")));
  return args.words().empty() ? ListSnapshots(world, opened) : ListEntries(world, opened, args);
}

}  // namespace

constinit const Command kWorkspaceLs = {
    .name = "workspace ls",
    .summary = "the snapshots of a workspace, or what is in one",
    .usage = "[SNAP [PATH]] [-R] [--name NAME]",
    .flags = kWorkspaceLsFlags,
    .max_words = 2,
    .run = RunWorkspaceLs,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
