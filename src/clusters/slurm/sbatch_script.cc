// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/sbatch_script.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "clusters/slurm/slurm_time.h"
#include "clusters/slurm/squeue_text.h"

namespace overcap {
namespace {

constexpr int64_t kMib = 1 << 20;
constexpr size_t kLongestName = 200, kMostNameWords = 4;
constexpr size_t kLongestDirective = 4000;
constexpr int kLongestWarning = 65535;  // Slurm keeps it in 16 bits

bool IsControl(unsigned char c) {
  return c < ' ' || c == 0x7F;
}

// "python train.py" of "python train.py --token=...": everybody sees a job's name, so nothing of its options.
std::string FirstWords(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const std::string& word : command) {
    if (words.size() == kMostNameWords || word.starts_with('-') || word.find('=') != std::string::npos) break;
    words.push_back(word);
  }
  return ShellJoin(words);
}

// Lists of many jobs are made from the queue alone, so a job without a name is called what it does. Slurm
// takes any byte, but a newline in a name breaks everybody's squeue.
std::string JobName(const JobSpec& spec) {
  std::string name = spec.name.empty() ? FirstWords(spec.command) : spec.name;
  if (name.empty()) name = spec.id;
  if (name.size() > kLongestName) {
    size_t end = kLongestName;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
    name.resize(end);
  }
  std::replace_if(
      name.begin(), name.end(), [](char c) { return IsControl(static_cast<unsigned char>(c)); }, ' ');
  return name;
}

// Slurm 22.05 has no way to write a backslash in the name of an output file, and sbatch takes "#SBATCH" and
// "#PBS" at the beginning of any line of the script for its own, within quotes as well.
Result<void> CheckPath(std::string_view path, std::string_view what) {
  if (path.empty() || path[0] != '/') {
    return Fail(ErrorCode::kUsage, StrCat(what, " ", Quoted(path), " is not an absolute path"));
  }
  const bool control = std::any_of(path.begin(), path.end(), IsControl);
  if (control || path.find('\\') != std::string_view::npos) {
    return Fail(ErrorCode::kUsage,
                StrCat(what, " ", Quoted(path), " holds a ", control ? "control character" : "backslash",
                       ", which Slurm cannot handle"),
                "keep overcap's folder and binary under a plain path");
  }
  return {};
}

Result<void> CheckWords(const std::vector<std::string>& words) {
  if (words.empty()) return Fail(ErrorCode::kInternal, "no agent to start");
  OC_TRY_VOID(CheckPath(words[0], "the program"));
  for (const std::string& word : words) {
    if (std::any_of(word.begin(), word.end(), IsControl)) {
      return Fail(ErrorCode::kUsage,
                  StrCat("the agent's argument ", Quoted(word), " holds a control character"));
    }
  }
  return {};
}

Result<void> CheckSettings(const Placement& placement, const SbatchSettings& settings) {
  std::vector<std::pair<std::string_view, std::string>> named = {{"node", placement.node},
                                                                 {"account", settings.account},
                                                                 {"qos", settings.qos},
                                                                 {"constraint", settings.constraint},
                                                                 {"reservation", settings.reservation}};
  for (const std::string& partition : settings.partitions) named.emplace_back("partition", partition);
  for (const auto& [what, value] : named) {
    const bool listed = what == "partition" && (value.empty() || value.find(',') != std::string::npos);
    if (listed || std::any_of(value.begin(), value.end(), IsControl)) {
      return Fail(ErrorCode::kUsage, StrCat("cluster setting ", what, " ", Quoted(value), " is no name"));
    }
  }
  if (settings.warn_seconds < 0 || settings.warn_seconds > kLongestWarning) {
    return Fail(ErrorCode::kUsage,
                StrCat("a warning ", settings.warn_seconds, " seconds ahead is not possible"),
                StrCat("Slurm allows 0 to ", kLongestWarning));
  }
  return CheckSbatchArgs(settings.extra_args);
}

// For --output: '%' begins a pattern.
std::string EscapePattern(std::string_view path) {
  std::string escaped;
  for (char c : path) escaped.append(c == '%' ? 2 : 1, c);
  return escaped;
}

std::string DependencyText(const std::vector<SlurmDependency>& after) {
  std::string ok, any;
  for (const SlurmDependency& job : after) (job.any_end ? any : ok) += StrCat(":", job.slurm_id);
  std::string text = ok.empty() ? "" : StrCat("afterok", ok);
  if (!any.empty()) text += StrCat(text.empty() ? "" : ",", "afterany", any);
  return text;
}

// What is left of it goes on when a node fails. Each node has one task, its agent: with a number of tasks for
// each node Slurm would give the least nodes only, whatever is free.
void AddRange(const Resources& resources, std::vector<std::string>* argv) {
  argv->push_back(StrCat("--nodes=", resources.nodes, "-", resources.max_nodes));
  argv->push_back("--no-kill");
  const int cpus = std::max(resources.cpus, resources.ranks_per_node);
  if (cpus > 1) argv->push_back(StrCat("--cpus-per-task=", cpus));
}

void AddNodes(const Resources& resources, std::vector<std::string>* argv) {
  argv->push_back(StrCat("--nodes=", resources.nodes));
  argv->push_back(StrCat("--ntasks-per-node=", resources.ranks_per_node));
  if (resources.cpus > 0) {
    const int ranks = std::max(1, resources.ranks_per_node);
    argv->push_back(StrCat("--cpus-per-task=", (resources.cpus + ranks - 1) / ranks));
  }
}

void AddResources(const Resources& resources, std::vector<std::string>* argv) {
  resources.elastic() ? AddRange(resources, argv) : AddNodes(resources, argv);
  if (resources.mem_bytes > 0)
    argv->push_back(StrCat("--mem=", (resources.mem_bytes + kMib - 1) / kMib, "M"));
  if (resources.time_seconds > 0) {
    argv->push_back(StrCat("--time=", FormatSlurmDuration(resources.time_seconds)));
  }
}

void AddPlace(const Placement& placement, const SbatchSettings& settings, std::vector<std::string>* argv) {
  if (!settings.partitions.empty()) argv->push_back(StrCat("--partition=", Join(settings.partitions, ",")));
  if (!settings.account.empty()) argv->push_back(StrCat("--account=", settings.account));
  if (!settings.qos.empty()) argv->push_back(StrCat("--qos=", settings.qos));
  if (!settings.reservation.empty()) argv->push_back(StrCat("--reservation=", settings.reservation));
  if (!placement.node.empty()) argv->push_back(StrCat("--nodelist=", placement.node));
}

void AddCourse(const SbatchRequest& request, const SbatchSettings& settings, std::vector<std::string>* argv) {
  const JobSpec& spec = request.spec;
  if (!spec.array.empty()) argv->push_back(StrCat("--array=", FormatArraySpec(spec.array)));
  if (!request.after.empty()) {
    argv->push_back(StrCat("--dependency=", DependencyText(request.after)));
    argv->push_back("--kill-on-invalid-dep=yes");
  }
  if (spec.hold) argv->push_back("--hold");
  if (spec.priority != 0) argv->push_back(StrCat("--nice=", -int64_t{spec.priority}));
  // The agent can ask for another start only of a job that may have one.
  argv->push_back(spec.requeue || spec.requeue_on_timeout ? "--requeue" : "--no-requeue");
  if (settings.warn_seconds > 0) argv->push_back(StrCat("--signal=B:USR1@", settings.warn_seconds));
}

std::vector<std::string> Notes(const JobSpec& spec) {
  const Resources& asked = spec.resources;
  std::vector<std::string> notes;
  if (spec.priority > 0) notes.push_back("Slurm heeds a priority above 0 only from operators");
  if (asked.time_seconds % 60 != 0) notes.push_back("Slurm rounds the time limit up to whole minutes");
  if (asked.nodes > 0 && asked.gpus % asked.nodes != 0) {
    notes.push_back(StrCat(asked.gpus, " GPUs do not divide by ", CountOf(asked.nodes, "node"),
                           ": Slurm spreads them as it likes"));
  }
  if (!asked.elastic() && asked.cpus > 0 && asked.cpus % std::max(1, asked.ranks_per_node) != 0) {
    notes.push_back(StrCat(CountOf(asked.cpus, "CPU"), " do not divide by ",
                           CountOf(asked.ranks_per_node, "rank"), ": each rank gets one more"));
  }
  return notes;
}

// sbatch reads words of up to 8191 bytes from a script, and takes a directive with one of these words
// anywhere in it for the border between the parts of a heterogeneous job. What follows the end of a line
// would be a line of the script.
bool FitsDirective(std::string_view option) {
  if (std::any_of(option.begin(), option.end(), IsControl)) return false;
  std::string lower(option);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return option.size() <= kLongestDirective && lower.find("hetjob") == std::string::npos &&
         lower.find("packjob") == std::string::npos;
}

// As sbatch reads it back: within double quotes only a backslash stands for something else, for what follows.
std::string Directive(std::string_view option) {
  std::string line = "#SBATCH \"";
  for (const char c : option) line.append(c == '"' || c == '\\' ? "\\" : "").push_back(c);
  return line + "\"\n";
}

// The environment is sbatch's own, which is given no more than IsBatchVariable(); everything else that the
// job needs is in its folder.
std::string Script(const std::vector<std::string>& options, const std::vector<std::string>& agent) {
  std::string script = "#!/bin/sh\n";
  for (const std::string& option : options) script += Directive(option);
  script += "exec";
  for (const std::string& word : agent) script += StrCat(" ", ShellQuote(word));
  return script + "\n";
}

// What the job is, beside what SbatchCommand() says.
std::vector<std::string> Options(const SbatchRequest& request, const SbatchSettings& settings,
                                 const std::vector<std::string>& gpus) {
  const JobSpec& spec = request.spec;
  std::vector<std::string> options = {StrCat("--job-name=", JobName(spec))};
  AddResources(spec.resources, &options);
  options.insert(options.end(), gpus.begin(), gpus.end());
  AddCourse(request, settings, &options);
  const std::string_view log = spec.array.empty() ? "/slurm.log" : "/slurm-%a.log";
  // A node that does not see the folder has none of it.
  const bool here = spec.store.empty();
  options.push_back(here ? StrCat("--output=", EscapePattern(request.folder), log) : "--output=/dev/null");
  options.push_back("--open-mode=append");
  options.push_back(StrCat("--chdir=", here ? request.folder : "/"));
  options.push_back("--export=ALL");
  return options;
}

}  // namespace

// The comment is looked for in sacct's copy of this line. --parsable is the last word, so that an extra
// option without its value takes it and the answer is none.
std::vector<std::string> SbatchCommand(const std::string& id, const Placement& placement,
                                       const SbatchSettings& settings) {
  std::vector<std::string> argv = {"sbatch", StrCat("--comment=", SlurmComment(id))};
  AddPlace(placement, settings, &argv);
  argv.push_back("--ignore-pbs");
  argv.insert(argv.end(), settings.extra_args.begin(), settings.extra_args.end());
  argv.push_back("--parsable");
  return argv;
}

Result<SbatchPlan> PlanSbatch(const SbatchRequest& request, const SbatchSettings& settings) {
  const JobSpec& spec = request.spec;
  OC_TRY_VOID(CheckPath(request.folder, "the job folder"));
  OC_TRY_VOID(CheckWords(request.agent));
  OC_TRY_VOID(CheckSettings(spec.placement, settings));
  OC_TRY(gpus, GpuOptions(spec.resources, settings));
  SbatchPlan plan;
  plan.script_path = StrCat(request.folder, "/script.sh");
  plan.notes = Notes(spec);
  plan.argv = SbatchCommand(spec.id, spec.placement, settings);
  std::vector<std::string> options = Options(request, settings, gpus);
  const auto odd = std::stable_partition(options.begin(), options.end(), FitsDirective);
  plan.argv.insert(plan.argv.begin() + 2, odd, options.end());
  options.erase(odd, options.end());
  plan.script = Script(options, request.agent);
  return plan;
}

}  // namespace overcap
