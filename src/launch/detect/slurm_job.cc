// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/slurm_job.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "launch/detect/host_name.h"
#include "launch/detect/slurm_text.h"
#include "model/host_list.h"
#include "sys/slurm_here.h"

namespace overcap {
namespace {

using Warnings = std::vector<std::string>;

constexpr std::chrono::milliseconds kLifeDeadline{3000};
constexpr std::chrono::milliseconds kLookDeadline{5000};

// The first of the names that has a value.
struct Told {
  std::string name;
  std::string value;
};
Told FirstOf(const Variables& variables, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto value = variables.Get(name); !value.empty()) return {name, std::string(value)};
  }
  return {};
}

Result<SlurmJobText> AskScontrol(Programs& programs, const std::string& id) {
  OC_TRY(answer, programs.Run({"scontrol", "-o", "-d", "show", "job", id}, kLifeDeadline));
  return ParseScontrolJob(answer.output, id);
}

// Tasks count as slots only when somebody asked for a number of them: otherwise Slurm tells the processors.
std::vector<int> TasksOf(const Variables& variables) {
  if (FirstOf(variables, {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE"}).name.empty()) return {};
  return ParseTasksPerNode(variables.Get("SLURM_TASKS_PER_NODE"));
}

bool ReadHosts(const Variables& variables, FoundJob* job, Warnings* warnings) {
  const Told list = FirstOf(variables, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  const auto names = ExpandHostList(list.value);
  if (!names || names->empty()) {
    warnings->push_back(StrCat(list.name, ": ", names ? "no host is in it" : names.error().message));
    return false;
  }
  const std::vector<int> tasks = TasksOf(variables);
  for (size_t i = 0; i < names->size(); ++i) {
    job->hosts.push_back({(*names)[i], tasks.size() == names->size() ? tasks[i] : 0, -1});
  }
  job->hosts_reason = list.name;
  return true;
}

void SetAllGpus(int count, const std::string& reason, FoundJob* job) {
  for (AllocatedHost& host : job->hosts) host.gpus = count;
  job->gpus_reason = reason;
}

// True when the variable holds a number of GPUs: then every host has so many.
bool TakeGpus(const Variables& variables, const char* name, FoundJob* job) {
  const auto value = variables.Get(name);
  const auto gpus = value.empty() ? std::nullopt : ParseSlurmGpus(value);
  if (!gpus) return false;
  if (job->gpu_type.empty()) job->gpu_type = gpus->type;
  SetAllGpus(gpus->count, name, job);
  return true;
}

void TakeScontrolGpus(const SlurmJobText& text, FoundJob* job) {
  if (job->gpu_type.empty()) job->gpu_type = text.gpu_type;
  if (text.gpus.empty()) {
    if (text.per_node.count > 0) SetAllGpus(text.per_node.count, "scontrol show job: TresPerNode", job);
    return;
  }
  for (AllocatedHost& host : job->hosts) {
    if (const auto told = text.gpus.find(host.name); told != text.gpus.end()) host.gpus = told->second;
  }
  job->gpus_reason = "scontrol -d show job";
}

bool IsHostOf(const FoundJob& job, std::string_view this_host) {
  return std::ranges::any_of(job.hosts, [&](const auto& host) { return SameHost(host.name, this_host); });
}

bool MentionsGpus(const Variables& variables) {
  return std::ranges::any_of(variables.entries(), [](const std::string& entry) {
    return entry.starts_with("SLURM_GPUS") || entry.starts_with("SLURM_JOB_GPUS=");
  });
}

// Hosts of one job may have different numbers of GPUs (--gpus=6 on two hosts); SLURM_GPUS_ON_NODE is about
// one of them only, so then the controller is asked.
void ReadGpus(const DetectInputs& inputs, FoundJob* job, Warnings* warnings) {
  const Variables& variables = inputs.variables;
  if (const auto type = ParseSlurmGpus(FirstOf(variables, {"SLURM_GPUS_PER_NODE", "SLURM_GPUS"}).value)) {
    job->gpu_type = type->type;
  }
  const bool inside = IsHostOf(*job, inputs.this_host);
  if (job->hosts.size() == 1 && inside && TakeGpus(variables, "SLURM_GPUS_ON_NODE", job)) return;
  if (TakeGpus(variables, "SLURM_GPUS_PER_NODE", job)) return;
  if (job->hosts.size() == 1) {
    if (TakeGpus(variables, "SLURM_GPUS_ON_NODE", job) || TakeGpus(variables, "SLURM_GPUS", job)) return;
    if (const auto list = variables.Get("SLURM_JOB_GPUS"); !list.empty()) {
      return SetAllGpus(static_cast<int>(Split(list, ',').size()), "SLURM_JOB_GPUS", job);
    }
  }
  if (inside && !MentionsGpus(variables)) return;
  const auto text = AskScontrol(inputs.programs, job->id);
  if (text) return TakeScontrolGpus(*text, job);
  if (job->hosts.size() > 1 && TakeGpus(variables, "SLURM_GPUS_ON_NODE", job)) {
    warnings->push_back(
        StrCat("the GPUs of the other hosts of job ", job->id, " are not known: ", text.error().message));
  }
}

// The one that the user has named, else the newest that holds this host; then others are named in a warning.
std::optional<SlurmQueueLine> Choose(std::vector<SlurmQueueLine> lines, const std::string& named,
                                     const std::string& this_host, Warnings* warnings) {
  std::erase_if(lines, [&](const SlurmQueueLine& line) {
    const auto hosts = ExpandHostList(line.node_list);
    return !hosts ||
           std::ranges::none_of(*hosts, [&](const auto& name) { return SameHost(name, this_host); });
  });
  if (lines.empty()) return std::nullopt;
  if (const auto line = std::ranges::find(lines, named, &SlurmQueueLine::id); line != lines.end())
    return *line;
  std::ranges::stable_sort(lines, std::ranges::greater{}, &SlurmQueueLine::start);
  if (lines.size() > 1) {
    std::vector<std::string> others;
    for (size_t i = 1; i < lines.size(); ++i) others.push_back(lines[i].id);
    warnings->push_back(StrCat("job ", lines[0].id, " is taken; you have more on this host: ",
                               Join(others, ", "), " (set SLURM_JOB_ID to choose)"));
  }
  return lines.front();
}

std::vector<std::pair<std::string, std::string>> RestoredVariables(const SlurmJobText& job, size_t hosts,
                                                                   const std::string& this_host) {
  const std::string count = StrCat(hosts);
  std::vector<std::pair<std::string, std::string>> all = {{"SLURM_JOB_ID", job.id},
                                                          {"SLURM_JOBID", job.id},
                                                          {"SLURM_JOB_NODELIST", job.node_list},
                                                          {"SLURM_NODELIST", job.node_list},
                                                          {"SLURM_JOB_NUM_NODES", count},
                                                          {"SLURM_NNODES", count},
                                                          {"SLURM_JOB_NAME", job.name},
                                                          {"SLURM_JOB_PARTITION", job.partition},
                                                          {"SLURM_JOB_ACCOUNT", job.account},
                                                          {"SLURM_SUBMIT_DIR", job.work_dir}};
  if (job.per_node.count > 0) {
    const std::string type = job.per_node.type.empty() ? "" : StrCat(job.per_node.type, ":");
    all.emplace_back("SLURM_GPUS_PER_NODE", StrCat(type, job.per_node.count));
  }
  for (const auto& [host, gpus] : job.gpus) {
    if (SameHost(host, this_host)) all.emplace_back("SLURM_GPUS_ON_NODE", StrCat(gpus));
  }
  std::erase_if(all, [](const auto& variable) { return variable.second.empty(); });
  return all;
}

std::optional<FoundJob> RestoreJob(const DetectInputs& inputs, const SlurmQueueLine& line,
                                   Warnings* warnings) {
  auto text = AskScontrol(inputs.programs, line.id);
  if (!text) {
    warnings->push_back(StrCat("job ", line.id, " is restored in part: ", text.error().message));
    text = SlurmJobText{};
    text->id = line.id;
  }
  text->node_list = line.node_list;
  const auto hosts = ExpandHostList(line.node_list);
  FoundJob job;
  job.id = line.id;
  job.reason = StrCat("squeue: job ", line.id, " runs on this host");
  for (const std::string& name : *hosts) job.hosts.push_back({name, 0, -1});
  job.hosts_reason = "squeue";
  TakeScontrolGpus(*text, &job);
  job.restored = RestoredVariables(*text, hosts->size(), inputs.this_host);
  return job;
}

// Why it makes no sense to go on asking; "" when Slurm has simply not been set up here.
std::string ProblemOf(const Result<Captured>& answer) {
  if (!answer) return answer.error().message;
  if (answer->output.find("configuration source") != std::string::npos) return "";
  return StrCat("squeue failed with status ", answer->end.exit_status, ": ",
                ToUtf8(Trim(answer->output).substr(0, 200)));
}

}  // namespace

JobLife AskSlurmLife(Programs& programs, const std::string& id) {
  if (programs.Find("squeue").empty()) return JobLife::kNotTold;
  const auto answer = programs.Run({"squeue", "-h", "-j", id, "-o", "%T"}, kLifeDeadline);
  return answer ? SlurmLifeFrom(*answer) : JobLife::kNotTold;
}

std::optional<FoundJob> SlurmJobOfVariables(const DetectInputs& inputs, Warnings* warnings) {
  const Told id = FirstOf(inputs.variables, {"SLURM_JOB_ID", "SLURM_JOBID"});
  if (id.name.empty() || FirstOf(inputs.variables, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}).name.empty()) {
    return std::nullopt;
  }
  const JobLife life = AskSlurmLife(inputs.programs, id.value);
  if (life == JobLife::kOver) {
    warnings->push_back(StrCat(id.name, " names job ", ToUtf8(id.value), ", which is over"));
    return std::nullopt;
  }
  FoundJob job;
  job.id = id.value;
  job.reason = id.name;
  if (life == JobLife::kNotTold) {
    warnings->push_back(StrCat("squeue does not tell whether job ", ToUtf8(id.value), " still runs; ",
                               id.name, " is believed"));
  }
  if (!ReadHosts(inputs.variables, &job, warnings)) return std::nullopt;
  ReadGpus(inputs, &job, warnings);
  return job;
}

std::optional<FoundJob> FindSlurmJob(const DetectInputs& inputs, Warnings* warnings, bool* reachable) {
  const auto answer =
      inputs.programs.Run({"squeue", "-h", "-u", inputs.user, "-t", "R", "-o", "%A|%S|%N"}, kLookDeadline);
  *reachable = answer && answer->end.ok();
  if (!*reachable) {
    if (const std::string problem = ProblemOf(answer); !problem.empty()) {
      warnings->push_back(StrCat("cannot ask Slurm for your jobs: ", problem));
    }
    return std::nullopt;
  }
  const Told named = FirstOf(inputs.variables, {"SLURM_JOB_ID", "SLURM_JOBID"});
  const auto line = Choose(ParseSqueueLines(answer->output), named.value, inputs.this_host, warnings);
  const bool told = !FirstOf(inputs.variables, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}).name.empty();
  if (!told && !named.value.empty() && (!line || line->id != named.value)) {
    warnings->push_back(StrCat(named.name, " names job ", ToUtf8(named.value),
                               ", which is over, not yours or not on this host"));
  }
  return line ? RestoreJob(inputs, *line, warnings) : std::nullopt;
}

bool IsWorthAskingSlurm(const DetectInputs& inputs, const std::string& program) {
  return SlurmIsSetUp(inputs.variables, program,
                      [&](const std::string& path) { return inputs.files.Exists(path); });
}

}  // namespace overcap
