// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/workspace_words.h"
#include "cli/table.h"
#include "control/workspace_look.h"

namespace overcap::cli {
namespace {

std::string JsonOf(const WorkspaceGlance& glance) {
  JsonWriter json;
  const Workspace& workspace = glance.workspace;
  json.BeginObject().Field("name", workspace.name).Field("folder", glance.folder).Field("here", glance.here);
  json.Field("snapshots", glance.snapshots).Field("env", workspace.env).Field("store", workspace.store);
  json.Field("encrypted", workspace.secret != WorkspaceSecret::kNone);
  json.Field("created", FormatTimeUtc(workspace.created_us));
  json.Key("newest");
  if (glance.newest_us == 0) {
    json.Null();
  } else {
    json.String(FormatTimeUtc(glance.newest_us));
  }
  return json.Field("problem", glance.problem).EndObject().Take();
}

Result<int> RunWorkspaceList(World& world, const Args&) {
  OC_TRY(workspaces, WorkspacesOf(world));
  Output& out = world.out();
  std::vector<Error> problems;
  const std::vector<WorkspaceGlance> glances = GlanceAtWorkspaces(workspaces, &problems);
  for (const Error& problem : problems) out.Warn(problem.message);
  if (out.json()) {
    std::vector<std::string> rows;
    for (const WorkspaceGlance& glance : glances) rows.push_back(JsonOf(glance));
    out.Json(StrCat("[", Join(rows, ",\n"), "]"));
    return 0;
  }
  if (glances.empty()) {
    out.Note("there is no workspace; 'overcap workspace create' makes one");
    return 0;
  }
  const int64_t now_us = world.clock().WallUs();
  Table table({{"NAME"},
               {"HERE"},
               {"FOLDER", false, true},
               {"SNAPSHOTS", true},
               {"NEWEST", true},
               {"ENCRYPTED"},
               {"PROBLEM", false, true}});
  for (const WorkspaceGlance& glance : glances) {
    table.AddRow({glance.workspace.name, glance.here ? "yes" : "no", glance.folder,
                  glance.problem.empty() ? StrCat(glance.snapshots) : "",
                  glance.newest_us == 0 ? "" : Ago(glance.newest_us, now_us),
                  glance.workspace.secret == WorkspaceSecret::kNone ? "" : "yes", glance.problem},
                 {Style::kBold});
  }
  out.Print(table);
  return 0;
}

}  // namespace

constinit const Command kWorkspaceList = {
    .name = "workspace list",
    .summary = "all workspaces, and how old their newest snapshots are",
    .max_words = 0,
    .run = RunWorkspaceList,
    .group = CommandGroup::kCode,
};

}  // namespace overcap::cli
