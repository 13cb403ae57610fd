// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/table.h"
#include "cli/world.h"
#include "control/simulate/simulation.h"
#include "control/simulate/trace_file.h"

namespace overcap::cli {
namespace {

using pooled::GroupReport;

constexpr size_t kMostUsers = 10;

constexpr Flag kPolicySimulateFlags[] = {
    {"--trace", "", "FILE", "the history: CSV, what sacct -P prints, or the engine's journal; also .gz"},
    {"--against", "", "POLICY", "another policy to compare with"},
    {"--scale", "", "FACTOR", "make the pool and the caps so many times as large"},
    {"--seed", "", "N", "of what is chosen at random"},
    {"--format", "", "NAME", "csv, sacct or journal, where it cannot be told from the file"},
    {"--columns", "", "MAP",
     "which column of a CSV file is what: submit=NAME,run=NAME:ms,gpus=NAME,lab=NAME"},
    {"--partition", "", "LIST", "partitions of all jobs, instead of those in the trace"},
    {"--checkpoint", "", "TIME", "jobs save their work so often; 'never': a preempted one begins anew"},
};

constexpr FlagSynonym kPolicySimulateSynonyms[] = {
    {"--html", "'--json' prints the numbers of the report that --html wrote"},
};

std::string Fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string Seconds(double seconds) {
  return seconds < 0.5 ? "0" : FormatDuration(static_cast<int64_t>(std::llround(seconds)));
}

std::vector<std::string> Cells(const GroupReport& group, bool is_lab = false) {
  return {group.name,
          is_lab ? std::to_string(group.gpu_cap) : "",
          std::to_string(group.jobs),
          Seconds(group.wait_mean_s),
          Seconds(group.wait_p50_s),
          Seconds(group.wait_p90_s),
          Fixed(group.slowdown_mean, 1),
          Fixed(group.gpu_hours, 0),
          Fixed(group.overcap_gpu_hours, 0),
          std::to_string(group.preemptions),
          Fixed(group.lost_gpu_hours, 1)};
}

Table GroupTable(const char* title) {
  return Table({{title},
                {"CAP", true},
                {"JOBS", true},
                {"WAIT", true},
                {"MEDIAN", true},
                {"90%", true},
                {"SLOWDOWN", true},
                {"GPU-H", true},
                {"OVERCAP-H", true},
                {"PREEMPTED", true},
                {"LOST-H", true}});
}

// What cannot be used, and what all of it comes to.
void PrintSum(Output& out, const pooled::ReplayReport& report) {
  for (const std::string& note : report.notes) out.Line(note);
  if (report.never_started > 0)
    out.Line(StrCat(CountOf(report.never_started, "job"), " never came to an end"));
  out.Line(StrCat(CountOf(report.all.jobs, "job"), " on ", CountOf(report.pool_gpus, "GPU"), " in ",
                  Seconds(static_cast<double>(report.span_s)), "; in use ",
                  Fixed(report.use_while_waited * 100, 1), "% while jobs came; fairness of labs ",
                  Fixed(report.lab_fairness, 2), ", of users ", Fixed(report.user_fairness, 2)));
}

// "-" where there is nothing to compare: no job of the lab ran.
void AddDifference(const std::string& name, const GroupReport& lab, const GroupReport& before, Table* table) {
  const auto of = [](const GroupReport& group, std::string text) {
    return group.jobs > 0 ? std::move(text) : std::string("-");
  };
  const bool both = lab.jobs > 0 && before.jobs > 0;
  const double change = both ? lab.wait_mean_s - before.wait_mean_s : 0;
  const std::string_view sign = change > 0.5 ? "+" : change < -0.5 ? "-" : "";
  table->AddRow({name, std::to_string(lab.jobs), std::to_string(before.jobs),
                 of(lab, Seconds(lab.wait_mean_s)), of(before, Seconds(before.wait_mean_s)),
                 both ? StrCat(sign, Seconds(std::fabs(change))) : "-", of(lab, Fixed(lab.slowdown_mean, 1)),
                 of(before, Fixed(before.slowdown_mean, 1)), std::to_string(lab.preemptions),
                 std::to_string(before.preemptions), Fixed(lab.lost_gpu_hours, 1),
                 Fixed(before.lost_gpu_hours, 1)});
}

void PrintDifference(Output& out, const Simulation& now, const Simulation& before) {
  out.Line("");
  out.Line(StrCat("against '", before.policy, "':"));
  PrintSum(out, before.report);
  Table table({{"LAB"},
               {"JOBS", true},
               {"BEFORE", true},
               {"WAIT", true},
               {"BEFORE", true},
               {"CHANGE", true},
               {"SLOWDOWN", true},
               {"BEFORE", true},
               {"PREEMPTED", true},
               {"BEFORE", true},
               {"LOST-H", true},
               {"BEFORE", true}});
  AddDifference("all", now.report.all, before.report.all, &table);
  for (const LabPair& lab : LabPairs(now, before)) AddDifference(lab.name, lab.now, lab.before, &table);
  out.Print(table);
}

void Print(Output& out, const Simulation& simulation, const Simulation* against) {
  const pooled::ReplayReport& report = simulation.report;
  PrintSum(out, report);
  Table labs = GroupTable("LAB");
  labs.AddRow(Cells(report.all));
  for (const GroupReport& lab : report.labs) labs.AddRow(Cells(lab, true));
  out.Print(labs);
  if (report.users.size() > 1) {
    out.Line("");
    Table users = GroupTable("USER");
    for (size_t i = 0; i < std::min(kMostUsers, report.users.size()); ++i)
      users.AddRow(Cells(report.users[i]));
    out.Print(users);
    if (report.users.size() > kMostUsers)
      out.Line(StrCat("and ", report.users.size() - kMostUsers, " more users: --json has all"));
  }
  if (against != nullptr) PrintDifference(out, simulation, *against);
}

Result<pooled::ReplayOptions> OptionsOf(const Args& args) {
  pooled::ReplayOptions options;
  OC_TRY(scale, OfFlag("--scale", ParseScale(args.Get("--scale"))));
  OC_TRY(seed, args.GetInt("--seed", 1, 0, 1'000'000'000'000));
  options.scale = scale;
  options.seed = static_cast<uint64_t>(seed);
  options.partitions = args.Get("--partition");
  const std::string_view every = args.Get("--checkpoint");
  if (every == "never") {
    options.checkpoint_s = 0;
  } else if (!every.empty()) {
    OC_TRY(seconds, OfFlag("--checkpoint", ParseDurationSeconds(every)));
    options.checkpoint_s = seconds;
  }
  return options;
}

Result<int> RunPolicySimulate(World& world, const Args& args) {
  if (args.Get("--trace").empty())
    return Fail(ErrorCode::kUsage, "no history is named", "overcap policy simulate POLICY --trace FILE");
  OC_TRY(options, OptionsOf(args));
  OC_TRY(columns, OfFlag("--columns", ParseColumnMap(args.Get("--columns"))));
  const std::string trace_file(args.Get("--trace"));
  OC_TRY(trace, ReadTraceFile(trace_file, args.Get("--format"), columns));
  OC_TRY(simulation, Simulate(args.words()[0], trace_file, trace, options));
  if (simulation.report.all.jobs == 0) {
    const std::string why = Join(simulation.report.notes, "; ");
    return Fail(ErrorCode::kUsage, StrCat("no job of ", Quoted(trace_file),
                                          " can be replayed: ", why.empty() ? "it has none" : why));
  }
  std::optional<Simulation> against;
  if (args.Has("--against")) {
    OC_TRY(other, Simulate(std::string(args.Get("--against")), trace_file, trace, options));
    against = std::move(other);
  }
  const Simulation* other = against ? &*against : nullptr;
  if (world.out().json()) {
    world.out().Json(SimulationToJson(simulation, other));
  } else {
    Print(world.out(), simulation, other);
  }
  return 0;
}

}  // namespace

constinit const Command kPolicySimulate = {
    .name = "policy simulate",
    .summary = "what a policy makes of a history: waits, use, lost work, by lab and user",
    .usage = "POLICY --trace FILE [--against OTHER] [--scale FACTOR]",
    .flags = kPolicySimulateFlags,
    .min_words = 1,
    .max_words = 1,
    .run = RunPolicySimulate,
    .group = CommandGroup::kSetup,
    .without_config = true,
    .synonyms = kPolicySimulateSynonyms,
};

}  // namespace overcap::cli
