// SPDX-License-Identifier: Apache-2.0
#include "control/usage.h"

#include <algorithm>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/picture_words.h"
#include "cli/table.h"
#include "cli/watch.h"

namespace overcap::cli {
namespace {

constexpr Flag kUsageFlags[] = {
    {"--users", "-u", "", "by user"},
    {"--labs", "-l", "", "by lab, with what each may have; the default where there are labs"},
    {"--lab", "-p", "LAB", "only this lab, by user"},
    {"--types", "", "", "by type of GPU too"},
    {"--watch", "-w", "", "again and again, until Ctrl-C"},
};

struct Wanted {
  bool users = false, labs = false, types = false, watch = false;
  std::string lab;
};

Result<Wanted> ReadWanted(const Args& args) {
  Wanted wanted{args.Has("--users"), args.Has("--labs"), args.Has("--types"), args.Has("--watch"),
                std::string(args.Get("--lab"))};
  if (!args.words().empty()) {
    if (args.Has("--lab") && wanted.lab != args.words()[0])
      return Fail(ErrorCode::kUsage,
                  StrCat("two labs are named: '", wanted.lab, "' and '", args.words()[0], "'"), "name one");
    wanted.lab = args.words()[0];
  }
  return wanted;
}

std::string TypesText(const PictureUse& use) {
  std::vector<std::string> parts;
  for (const auto& [type, count] : use.types) {
    if (count > 0) parts.push_back(StrCat(count, " ", type.empty() ? "of unknown type" : type));
  }
  return Join(parts, ", ");
}

std::string OrBlank(int count) {
  return count == 0 ? "" : StrCat(count);
}

Style StyleOfUse(const UsageRow& row) {
  return row.gpu_cap && row.use.gpus >= *row.gpu_cap ? Style::kYellow : Style::kPlain;
}

std::string WithCap(int used, const std::optional<int>& cap) {
  return cap ? StrCat(used, "/", *cap) : StrCat(used);
}

std::string RowsText(std::string_view title, const std::vector<UsageRow>& rows, const UsageRow* sum,
                     bool types, int width, bool color) {
  Table table({{std::string(title)},
               {"GPUS", true},
               {"OVERCAP", true},
               {"WAITING", true},
               {"CAPPED", true},
               {"CPUS", true},
               {"JOBS", true},
               {"WAIT JOBS", true},
               {"TYPES", false, true}});
  const auto add = [&](const UsageRow& row, Style style) {
    const PictureUse& use = row.use;
    table.AddRow(
        {row.name, WithCap(use.gpus, row.gpu_cap), OrBlank(use.overcap_gpus), OrBlank(use.waiting_gpus),
         OrBlank(use.capped_gpus), WithCap(use.cpus + use.overcap_cpus, row.cpu_cap),
         StrCat(use.jobs + use.overcap_jobs), OrBlank(use.waiting_jobs), types ? TypesText(use) : ""},
        {style, StyleOfUse(row)});
  };
  if (rows.empty()) return "";
  for (const UsageRow& row : rows) add(row, Style::kPlain);
  if (sum != nullptr) add(*sum, Style::kBold);
  return table.Render(width, color);
}

std::string TypesTable(const UsageReport& report, int width, bool color) {
  Table table({{"TYPE"},
               {"USED", true},
               {"OVERCAP", true},
               {"FREE", true},
               {"TOTAL", true},
               {"AWAY", true},
               {"WAITING", true}});
  for (const UsageType& kind : report.types) {
    table.AddRow({kind.type.empty() ? "any" : kind.type, StrCat(kind.used), OrBlank(kind.overcap),
                  StrCat(kind.free), StrCat(kind.total), OrBlank(kind.away), OrBlank(kind.waiting)});
  }
  return table.Render(width, color);
}

std::string Summary(const UsageReport& report) {
  const PictureUse& use = report.total;
  const int over = std::min(use.overcap_gpus, report.gpus_used);
  std::string text = StrCat(report.gpus_used, " of ", CountOf(report.gpus, "GPU"), " in use");
  if (over > 0) text += StrCat(", ", over, " of them over the cap");
  text += StrCat("; ", report.gpus_free, " free");
  if (report.gpus_away > 0) text += StrCat(", ", report.gpus_away, " on nodes that take no jobs");
  if (use.waiting_gpus > 0) text += StrCat("; waiting jobs ask for ", use.waiting_gpus);
  return text + "\n";
}

// Also where nobody of the lab has any jobs.
std::string LabSummary(const UsageReport& report) {
  const PictureUse& use = report.total;
  std::optional<int> cap;
  for (const UsageRow& row : report.labs) {
    if (row.name == report.lab) cap = row.gpu_cap;
  }
  std::string text = StrCat("lab ", Quoted(report.lab), ": ", use.gpus, cap ? StrCat(" of ", *cap) : "",
                            cap.value_or(use.gpus) == 1 ? " GPU in use" : " GPUs in use");
  if (use.overcap_gpus > 0) text += StrCat(", ", use.overcap_gpus, " more over the cap");
  if (use.waiting_gpus > 0) text += StrCat("; waiting jobs ask for ", use.waiting_gpus);
  return text + "\n";
}

std::string ReportText(const UsageReport& report, const Wanted& wanted, int width, bool color) {
  const bool labs = wanted.labs || (!wanted.users && wanted.lab.empty() && !report.labs.empty());
  const bool users = wanted.users || !labs;
  std::string text;
  const UsageRow sum{"all", report.total, {}, {}};
  if (labs)
    text += RowsText("LAB", report.labs, report.labs.size() > 1 ? &sum : nullptr, wanted.types, width, color);
  if (users) {
    if (!text.empty()) text += "\n";
    text +=
        RowsText("USER", report.users, report.users.size() > 1 ? &sum : nullptr, wanted.types, width, color);
  }
  if (wanted.types) text += StrCat(text.empty() ? "" : "\n", TypesTable(report, width, color));
  return text + (wanted.lab.empty() ? Summary(report) : LabSummary(report));
}

Result<std::string> Frame(World& world, const Wanted& wanted, int width, bool color) {
  const PictureAges ages =
      wanted.watch ? PictureAges{kWatchAgeUs, kWatchAsideAgeUs} : PictureAges{0, kWatchAgeUs};
  OC_TRY(picture, Look(world, ages));
  OC_TRY(report, MakeUsage(picture, wanted.lab));
  const int64_t now_us = world.clock().WallUs();
  if (world.out().json()) return UsageToJson(report, picture, now_us) + "\n";
  return ReportText(report, wanted, width, color) + PictureNotes(picture, now_us, wanted.watch);
}

Result<int> RunUsage(World& world, const Args& args) {
  OC_TRY(wanted, ReadWanted(args));
  if (wanted.watch) {
    return Watch(world, [&](int width, bool color) { return Frame(world, wanted, width, color); });
  }
  const Terminal& terminal = world.out().terminal();
  OC_TRY(text, Frame(world, wanted, terminal.width, terminal.out_color));
  world.out().Write(text);
  return 0;
}

}  // namespace

constinit const Command kUsage = {
    .name = "usage",
    .summary = "who uses how many GPUs of the cluster: labs and their caps, users, types",
    .usage = "[-u] [-l] [-p LAB | LAB] [--types] [--watch]",
    .flags = kUsageFlags,
    .max_words = 1,
    .run = RunUsage,
};

}  // namespace overcap::cli
