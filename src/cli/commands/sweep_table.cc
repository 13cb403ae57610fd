// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/sweep_table.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/table.h"
#include "control/sweep.h"

namespace overcap::cli {

std::string CombinationsText(const JobSpec& spec, int width) {
  constexpr int kMostShown = 50;
  std::vector<Column> columns = {{"TASK", true}};
  for (const SweepAxis& axis : spec.sweep) columns.push_back({axis.name});
  Table table(std::move(columns));
  const int count = spec.array.Count();
  for (int task = 0; task < std::min(count, kMostShown); ++task) {
    std::vector<std::string> cells = SweepValues(spec.sweep, task);
    cells.insert(cells.begin(), std::to_string(task));
    table.AddRow(cells);
  }
  const std::string rest = count > kMostShown ? StrCat("... and ", count - kMostShown, " more\n") : "";
  return table.Render(width, false) + rest;
}

std::string WithCombinations(std::string json, const JobSpec& spec) {
  if (spec.sweep.empty()) return json;
  JsonWriter list;
  list.BeginArray();
  for (int task = 0; task < spec.array.Count(); ++task) {
    const std::vector<std::string> values = SweepValues(spec.sweep, task);
    list.BeginObject().Field("task", task).Key("values").BeginObject();
    for (size_t i = 0; i < values.size(); ++i) list.Field(spec.sweep[i].name, ToUtf8(values[i]));
    list.EndObject().EndObject();
  }
  return json.insert(json.size() - 1, StrCat(",\"combinations\":", list.EndArray().Text()));
}

}  // namespace overcap::cli
