// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/pbs_job.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "launch/detect/host_name.h"
#include "launch/detect/pbs_hosts.h"
#include "launch/detect/pbs_text.h"

namespace overcap {
namespace {

using Warnings = std::vector<std::string>;

constexpr std::chrono::milliseconds kLifeDeadline{3000};
constexpr std::chrono::milliseconds kLookDeadline{5000};

// The value of `name` in the text of pbs.conf.
std::string SettingIn(const std::string& text, std::string_view name) {
  for (const std::string& line : Split(text, '\n')) {
    const std::string_view setting = Trim(line);
    if (setting.starts_with(name) && setting.substr(name.size()).starts_with('=')) {
      return std::string(Trim(setting.substr(name.size() + 1)));
    }
  }
  return "";
}

std::string ConfFile(const Variables& variables) {
  const auto named = variables.Get("PBS_CONF_FILE");
  return named.empty() ? "/etc/pbs.conf" : std::string(named);
}

// Where PBS may keep the node file of the job.
std::vector<std::string> NodeFilePlaces(const DetectInputs& inputs, const std::string& id) {
  std::vector<std::string> homes = {std::string(inputs.variables.Get("PBS_HOME"))};
  if (const auto conf = inputs.files.Read(ConfFile(inputs.variables))) {
    homes.push_back(SettingIn(*conf, "PBS_HOME"));
  }
  homes.push_back("/var/spool/pbs");
  std::vector<std::string> places;
  for (const std::string& home : homes) {
    if (home.starts_with('/')) places.push_back(StrCat(home, "/aux/", id));
  }
  return places;
}

// The file's path, "" when none could be had.
std::string NodeFileOf(const DetectInputs& inputs, const PbsJobText& job,
                       const std::vector<AllocatedHost>& hosts, Warnings* warnings) {
  for (const std::string& place : NodeFilePlaces(inputs, job.id)) {
    if (const auto text = inputs.files.Read(place); text && !Trim(*text).empty()) return place;
  }
  const std::string folder = inputs.state_folder + "/env";
  std::string file = StrCat(folder, "/nodefile-", job.id);
  auto written = inputs.files.MakeFolders(folder);
  if (written) written = inputs.files.WriteAtomic(file, NodeFileText(hosts), false);
  if (written) return file;
  warnings->push_back(StrCat("job ", job.id, " is restored without a node file: ", written.error().message));
  return "";
}

// The one that the user has named, else the newest that holds this host; then others are named in a warning.
const PbsJobText* Choose(const std::vector<PbsJobText>& jobs, const DetectInputs& inputs,
                         Warnings* warnings) {
  std::vector<const PbsJobText*> mine;
  for (const PbsJobText& job : jobs) {
    if (job.owner != inputs.user || job.state != "R") continue;
    const auto hosts = HostsOf(job);
    if (!hosts) {
      warnings->push_back(StrCat("job ", job.id, ": ", hosts.error().message));
    } else if (std::ranges::any_of(*hosts,
                                   [&](const auto& host) { return SameHost(host.name, inputs.this_host); })) {
      mine.push_back(&job);
    }
  }
  if (mine.empty()) return nullptr;
  const auto named = std::ranges::find(mine, inputs.variables.Get("PBS_JOBID"), &PbsJobText::id);
  if (named != mine.end()) return *named;
  std::ranges::stable_sort(mine, std::ranges::greater{}, &PbsJobText::start);
  if (mine.size() > 1) {
    std::vector<std::string> others;
    for (size_t i = 1; i < mine.size(); ++i) others.push_back(mine[i]->id);
    warnings->push_back(StrCat("job ", mine[0]->id, " is taken; you have more on this host: ",
                               Join(others, ", "), " (set PBS_JOBID to choose)"));
  }
  return mine.front();
}

FoundJob RestoreJob(const DetectInputs& inputs, const PbsJobText& text, Warnings* warnings) {
  FoundJob job;
  job.id = text.id;
  job.reason = StrCat("qstat: job ", text.id, " runs on this host");
  job.hosts = HostsOf(text).value_or(std::vector<AllocatedHost>{{inputs.this_host}});
  job.hosts_reason = "qstat: exec_host";
  if (std::ranges::any_of(job.hosts, [](const auto& host) { return host.gpus > 0; })) {
    job.gpus_reason = "qstat: ngpus of exec_vnode";
  } else {
    for (AllocatedHost& host : job.hosts) host.gpus = -1;  // sites that give whole hosts often count none
  }
  job.restored = {{"PBS_JOBID", text.id},
                  {"PBS_NODEFILE", NodeFileOf(inputs, text, job.hosts, warnings)},
                  {"PBS_JOBNAME", text.name},
                  {"PBS_QUEUE", text.queue}};
  job.restored.insert(job.restored.end(), text.o_variables.begin(), text.o_variables.end());
  std::erase_if(job.restored, [](const auto& variable) { return variable.second.empty(); });
  return job;
}

// What qstat says about the user's running jobs; with qselect it need not tell of all those of the site.
Result<std::vector<PbsJobText>> AskQstat(const DetectInputs& inputs) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> qstat = {"qstat", "-f", "-F", "json"};
  if (!inputs.programs.Find("qselect").empty()) {
    OC_TRY(ids, inputs.programs.Run({"qselect", "-u", inputs.user, "-s", "R"}, kLookDeadline));
    if (ids.end.ok()) {
      for (const std::string& line : Split(ids.output, '\n')) {
        if (IsPbsJobId(Trim(line))) qstat.emplace_back(Trim(line));
      }
      if (qstat.size() == 4) return std::vector<PbsJobText>();
    }
  }
  const auto used =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  OC_TRY(answer, inputs.programs.Run(qstat, std::max(kLookDeadline - used, std::chrono::milliseconds(100))));
  if (!answer.end.ok() && answer.output.find('{') == std::string::npos) {
    return Fail(ErrorCode::kUnavailable, StrCat("qstat failed with status ", answer.end.exit_status, ": ",
                                                ToUtf8(Trim(answer.output).substr(0, 200))));
  }
  if (Trim(answer.output).empty()) return std::vector<PbsJobText>();
  return ParseQstat(answer.output);
}

}  // namespace

std::optional<FoundJob> PbsJobOfVariables(const DetectInputs& inputs, Warnings* warnings) {
  const std::string id(inputs.variables.Get("PBS_JOBID"));
  if (id.empty()) return std::nullopt;
  const std::string file(inputs.variables.Get("PBS_NODEFILE"));
  const auto text = file.starts_with('/')
                        ? inputs.files.Read(file)
                        : Result<std::string>(Fail(ErrorCode::kNotFound, "PBS_NODEFILE is not set"));
  if (!text) {
    warnings->push_back(StrCat("PBS_JOBID names job ", ToUtf8(id),
                               ", but its node file cannot be read: ", text.error().message));
    return std::nullopt;
  }
  const auto hosts = ParseNodeFile(*text, file);
  if (!hosts) {
    warnings->push_back(StrCat("PBS_NODEFILE: ", hosts.error().message));
    return std::nullopt;
  }
  FoundJob job;
  job.id = id;
  job.reason = "PBS_JOBID";
  job.hosts = *hosts;
  job.hosts_reason = "PBS_NODEFILE";
  return job;
}

std::optional<FoundJob> FindPbsJob(const DetectInputs& inputs, Warnings* warnings, bool* reachable) {
  const auto jobs = AskQstat(inputs);
  *reachable = jobs.has_value();
  if (!jobs) {
    warnings->push_back(StrCat("cannot ask PBS for your jobs: ", jobs.error().message));
    return std::nullopt;
  }
  const PbsJobText* job = Choose(*jobs, inputs, warnings);
  if (job == nullptr) return std::nullopt;
  return RestoreJob(inputs, *job, warnings);
}

bool PbsIsSetUp(const DetectInputs& inputs, const std::string& program) {
  // Other systems' packages bring a qstat too.
  const std::string folder = program.substr(0, program.rfind('/'));
  return (folder != "/usr/bin" && folder != "/bin") || inputs.files.Exists(ConfFile(inputs.variables));
}

JobLife AskPbsLife(Programs& programs, const std::string& id) {
  if (programs.Find("qstat").empty()) return JobLife::kNotTold;
  const auto answer = programs.Run({"qstat", id}, kLifeDeadline);
  return answer ? PbsLifeFrom(*answer) : JobLife::kNotTold;
}

}  // namespace overcap
