// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/allocation_text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_words.h"
#include "cli/commands/person_words.h"
#include "cli/table.h"

namespace overcap::cli {
namespace {

std::string TimeLeft(const JobRecord& record, int64_t now_us) {
  const int64_t limit = record.spec.resources.time_seconds;
  if (limit == 0 || record.started_us == 0 || record.state != JobState::kRunning) return "";
  const int64_t left = limit - (now_us - record.started_us) / 1'000'000;
  return FormatDuration(std::max<int64_t>(left, 0));
}

void AddRow(const AllocationState& state, int64_t now_us, Table* table) {
  const std::string ssh = state.ssh ? SshHostName(state.allocation.name) : "";
  if (!state.record) {
    table->AddRow({state.allocation.name, state.trouble, "", "", "", ssh, state.allocation.cluster,
                   state.allocation.job});
    return;
  }
  const JobRecord& record = *state.record;
  table->AddRow({state.allocation.name, StateText(record, now_us), Join(state.nodes, ", "),
                 std::to_string(record.spec.resources.gpus), TimeLeft(record, now_us), ssh,
                 state.allocation.cluster, state.allocation.job},
                {Style::kBold, StateStyle(record.state)});
}

Result<int> RunAllocList(World& world, const Args&) {
  OC_TRY(allocations, AllocationsOf(world));
  const std::vector<AllocationState> states = LookAtAllocations(allocations);
  const int64_t now_us = world.clock().WallUs();
  Output& out = world.out();
  if (out.json()) {
    std::string json = "[";
    for (const AllocationState& state : states)
      json += StrCat(json.size() > 1 ? ",\n" : "", AllocationJson(state, now_us));
    out.Json(json + "]");
    return 0;
  }
  Table table({{"NAME"},
               {"STATE", false, true},
               {"NODE"},
               {"GPUS", true},
               {"LEFT", true},
               {"SSH"},
               {"CLUSTER"},
               {"JOB"}});
  for (const AllocationState& state : states) AddRow(state, now_us, &table);
  if (table.rows() == 0) {
    out.Note("nothing is held; overcap alloc holds GPUs");
  } else {
    out.Print(table);
  }
  return 0;
}

}  // namespace

constinit const Command kAllocList = {
    .name = "alloc list",
    .summary = "what you hold, and where",
    .max_words = 0,
    .run = RunAllocList,
};

}  // namespace overcap::cli
