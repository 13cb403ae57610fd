// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/saved_environment.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "model/host_list.h"

namespace overcap {
namespace {

constexpr std::string_view kExport = "export ";
constexpr std::string_view kEnd = "# end\n";  // a file without it is cut off

bool IsName(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// For sh, whatever is in it: the quote itself ends the word and is added escaped.
std::string InQuotes(std::string_view value) {
  std::string text = "'";
  for (const char c : value) c == '\'' ? text += "'\\''" : text += c;
  return text + "'";
}

// The value of what InQuotes() has made; nullopt for any other text.
std::optional<std::string> OutOfQuotes(std::string_view text) {
  if (text.size() < 2 || text.front() != '\'' || text.back() != '\'') return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::string value;
  while (true) {
    const size_t quote = std::min(text.find('\''), text.size());
    value += text.substr(0, quote);
    text.remove_prefix(quote);
    if (text.empty()) return value;
    if (!text.starts_with("'\\''")) return std::nullopt;
    value += '\'';
    text.remove_prefix(4);
  }
}

// False when it is no export line.
bool ReadExportLine(std::string_view line, NamedValues* values) {
  if (!line.starts_with(kExport)) return false;
  line.remove_prefix(kExport.size());
  const size_t equals = std::min(line.find('='), line.size());
  const std::string_view name = line.substr(0, equals);
  const auto value = OutOfQuotes(line.substr(std::min(equals + 1, line.size())));
  if (!IsName(name) || !value) return false;
  values->emplace_back(name, *value);
  return true;
}

// Of one task, step, terminal or process of the job, not of the job.
bool IsOfOnePart(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "SLURM_PROCID",   "SLURM_LOCALID",     "SLURM_NODEID",       "SLURM_GTIDS",
      "SLURM_TASK_PID", "SLURM_STEPID",      "SLURM_PRIO_PROCESS", "PBS_TASKNUM",
      "PBS_NODENUM",    "PBS_MOMPORT",       "PBS_ENVIRONMENT",    "SLURM_LAUNCH_NODE_IPADDR",
      "SLURM_CPU_BIND", "SLURM_DISTRIBUTION"};
  static constexpr std::string_view kFamilies[] = {"SLURM_STEP_",     "SLURM_SRUN_", "SLURM_PTY_",
                                                   "SLURM_CPU_BIND_", "SLURM_MPI_",  "SLURM_PMI"};
  return std::ranges::find(kNames, name) != std::end(kNames) ||
         std::ranges::any_of(kFamilies, [&](std::string_view family) { return name.starts_with(family); });
}

bool MayBeSecret(std::string_view name) {
  static constexpr std::string_view kWords[] = {"COOKIE", "JWT",        "TOKEN", "SECRET",
                                                "PASSW",  "CREDENTIAL", "KEY"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return name.find(word) != name.npos; });
}

bool IsKept(std::string_view name) {
  return (name.starts_with("PBS_") || name.starts_with("SLURM_") || name == "SLURMD_NODENAME") &&
         !IsOfOnePart(name) && !MayBeSecret(name);
}

void SetValue(std::string name, std::string value, NamedValues* values) {
  const auto found = std::ranges::find(*values, name, &NamedValues::value_type::first);
  if (found != values->end()) {
    found->second = std::move(value);
  } else {
    values->emplace_back(std::move(name), std::move(value));
  }
}

bool IsFileName(std::string_view name) {
  return !name.empty() && name.size() < 200 && name[0] != '.' &&
         std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '[' || c == ']' || c == '-' || c == '_';
         });
}

std::string IdOf(std::string_view name) {
  const size_t dash = name.find('-');
  return dash == name.npos ? "" : std::string(name.substr(dash + 1));
}

// Whether a saved name is the one that the user means by `job`.
bool Fits(std::string_view name, std::string_view job) {
  const std::string id = IdOf(name);
  return name == job ||
         (!id.empty() && (id == job || (name.starts_with("pbs-") && id.substr(0, id.find('.')) == job)));
}

tl::unexpected<Error> NothingSaved(std::string_view job) {
  return Fail(ErrorCode::kNotFound,
              job.empty() ? "no environment was saved"
                          : StrCat("no environment of job '", ToUtf8(job), "' was saved"),
              "overcap env --save, in a shell of the job");
}

Result<std::string> FindSaved(const std::string& folder, std::string_view job, const Files& files) {
  if (job.empty()) {
    const auto latest = files.Read(folder + "/latest");
    const std::string name(latest ? Trim(*latest) : std::string_view());
    if (!IsFileName(name)) return NothingSaved(job);
    return name;
  }
  std::vector<std::string> fitting;
  for (const std::string& name : files.List(folder).value_or(std::vector<std::string>())) {
    if (!name.starts_with("nodefile-") && name != "latest" && Fits(name, job)) fitting.push_back(name);
  }
  if (fitting.empty()) return NothingSaved(job);
  if (fitting.size() > 1) {
    return Fail(ErrorCode::kConflict, StrCat("'", ToUtf8(job), "' may mean ", Join(fitting, " or ")),
                StrCat("overcap env --load ", fitting[0]));
  }
  return fitting[0];
}

}  // namespace

std::string ExportLines(const NamedValues& values) {
  std::string lines;
  for (const auto& [name, value] : values) {
    if (!IsName(name) || value.find('\n') != value.npos || value.find('\0') != value.npos) continue;
    lines += StrCat(kExport, name, "=", InQuotes(value), "\n");
  }
  return lines;
}

NamedValues JobVariables(const Variables& variables, const Allocation& allocation) {
  NamedValues values;
  for (const std::string& entry : variables.entries()) {
    const size_t equals = entry.find('=');
    if (equals == entry.npos || !IsKept(std::string_view(entry).substr(0, equals))) continue;
    if (allocation.in_job) SetValue(entry.substr(0, equals), entry.substr(equals + 1), &values);
  }
  for (const auto& [name, value] : allocation.restored) SetValue(name, value, &values);
  return values;
}

NamedValues FactsOf(const Allocation& allocation, int world_size) {
  std::vector<std::string> names;
  int gpus = 0;
  for (const AllocatedHost& host : allocation.hosts) {
    names.push_back(host.name);
    gpus = std::max(gpus, host.gpus);
  }
  return {{"OVERCAP_NHOSTS", StrCat(names.size())},
          {"OVERCAP_GPUS_PER_HOST", StrCat(gpus)},
          {"OVERCAP_WORLD_SIZE", StrCat(world_size)},
          {"OVERCAP_HOSTS", CompressHostList(names)},
          {"OVERCAP_JOB", allocation.job_id}};
}

std::string SavedName(const Allocation& allocation) {
  const std::string scheduler = SchedulerName(allocation.scheduler);
  return allocation.job_id.empty() ? scheduler : StrCat(scheduler, "-", allocation.job_id);
}

Result<std::string> SaveEnvironment(const std::string& root, const std::string& name,
                                    const NamedValues& values, Files& files) {
  if (!IsFileName(name)) {
    return Fail(ErrorCode::kUsage, StrCat("'", ToUtf8(name), "' cannot be the name of a file"));
  }
  const std::string folder = root + "/env", file = StrCat(folder, "/", name);
  OC_TRY_VOID(files.MakeFolders(folder));
  OC_TRY_VOID(files.WriteAtomic(file, StrCat(ExportLines(values), kEnd), false));
  OC_TRY_VOID(files.WriteAtomic(folder + "/latest", name + "\n", false));
  return file;
}

Result<SavedEnvironment> LoadEnvironment(const std::string& root, std::string_view job, const Files& files) {
  const std::string folder = root + "/env";
  OC_TRY(name, FindSaved(folder, job, files));
  const auto text = files.Read(StrCat(folder, "/", name));
  if (!text && text.error().code == ErrorCode::kNotFound) return NothingSaved(name);
  if (!text) return Fail(text.error());
  SavedEnvironment saved{name, name.substr(0, name.find('-')), IdOf(name), {}};
  std::string_view lines = *text;
  bool good = lines.ends_with(kEnd);
  if (good) lines.remove_suffix(kEnd.size());
  while (good && !lines.empty()) {
    const size_t end = lines.find('\n');
    good = end != lines.npos && ReadExportLine(lines.substr(0, end), &saved.values);
    if (good) lines.remove_prefix(end + 1);
  }
  if (!good) {
    return Fail(ErrorCode::kCorrupt, StrCat("the saved environment '", folder, "/", name, "' is damaged"),
                "overcap env --save, in a shell of the job");
  }
  return saved;
}

}  // namespace overcap
