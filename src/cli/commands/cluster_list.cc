// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/table.h"
#include "cli/world.h"
#include "control/open_cluster.h"

namespace overcap::cli {
namespace {

struct Row {
  std::string name, driver, folder, from;
  bool is_default = false;
};

// The file and line that name it first; what else it is there for.
std::string FromOf(const std::string& name, const Config& config) {
  const std::string prefix = StrCat("clusters.", name, ".");
  const ConfigSetting* first = nullptr;
  for (const auto& [path, setting] : config.settings) {
    if (!path.starts_with(prefix)) continue;
    if (first == nullptr || setting.line < first->line) first = &setting;
  }
  if (first != nullptr) return StrCat(first->file, ":", first->line);
  return config.clusters.at(name).implied ? "found on this machine" : "always there";
}

std::vector<Row> Rows(const World& world) {
  const Config& config = world.config();
  std::vector<Row> rows;
  for (const auto& [name, cluster] : config.clusters) {
    const auto folder = ClusterRoot(name, config, world.root());
    rows.push_back({name, cluster.driver, folder ? *folder : cluster.folder, FromOf(name, config),
                    name == world.cluster_name()});
  }
  return rows;
}

void PrintJson(const std::vector<Row>& rows, Output& out) {
  JsonWriter json;
  json.BeginArray();
  for (const Row& row : rows) {
    json.BeginObject().Field("name", row.name).Field("driver", row.driver).Field("default", row.is_default);
    json.Field("folder", row.folder).Field("from", row.from).EndObject();
  }
  out.Json(json.EndArray().Text());
}

Result<int> RunClusterList(World& world, const Args&) {
  const std::vector<Row> rows = Rows(world);
  Output& out = world.out();
  if (out.json()) {
    PrintJson(rows, out);
    return 0;
  }
  Table table({{"NAME"}, {"DRIVER"}, {"DEFAULT"}, {"FOLDER", false, true}, {"FROM"}});
  for (const Row& row : rows) {
    if (out.quiet()) out.Line(row.name);
    table.AddRow({row.name, row.driver, row.is_default ? "yes" : "", row.folder, row.from});
  }
  if (!out.quiet()) out.Print(table);
  return 0;
}

}  // namespace

constinit const Command kClusterList = {.name = "cluster list",
                                        .summary = "the clusters that jobs can go to",
                                        .max_words = 0,
                                        .run = RunClusterList,
                                        .group = CommandGroup::kSetup};

}  // namespace overcap::cli
