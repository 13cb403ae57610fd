// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/slurm_text.h"

#include <algorithm>

#include "base/text.h"
#include "model/gpu_type.h"
#include "model/host_list.h"

namespace overcap {
namespace {

constexpr int kMaxGpus = 4096;
constexpr long long kFirstSpecialStep = 4294967290;  // interactive; then batch, extern, pending

// One entry without its "(IDX:0-1)": {count, type}; nullopt: no such text; count 0: not GPUs.
std::optional<SlurmGpus> ParseGpuEntry(std::string_view entry) {
  entry = entry.substr(0, entry.find('('));
  std::string text(Trim(entry));
  if (text.starts_with("gres/") || text.starts_with("gres:")) text.erase(0, 5);
  if (const size_t equals = text.find('='); equals != std::string::npos) text[equals] = ':';
  std::vector<std::string> words = Split(text, ':');
  if (words[0] == "gpu") {
    words.erase(words.begin());
    if (words.empty()) return SlurmGpus{1, ""};
  } else if (words.size() > 2 || words[0] == "shard" || words[0] == "mps") {
    return SlurmGpus{};
  }
  const auto count = ParseInt(words.back());
  if (!count && words.size() == 1) return SlurmGpus{1, NormalGpuType(words[0])};  // "gpu:a40": one of them
  if (!count || *count < 0 || *count > kMaxGpus) return std::nullopt;
  return SlurmGpus{static_cast<int>(*count), words.size() > 1 ? NormalGpuType(words[0]) : ""};
}

bool IsStateWord(std::string_view word) {
  return !word.empty() &&
         std::ranges::all_of(word, [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

bool HoldsHosts(std::string_view state) {
  static constexpr std::string_view kStates[] = {"RUNNING",   "SUSPENDED",     "STOPPED",
                                                 "SIGNALING", "CONFIGURING",   "RESIZING",
                                                 "STAGE_OUT", "POWER_UP_NODE", "SPECIAL_EXIT"};
  return std::ranges::find(kStates, state) != std::end(kStates);
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// The value of " KEY=" up to the next blank; "" when it is not there or "(null)".
std::string Field(std::string_view text, std::string_view key) {
  const size_t found = text.find(StrCat(" ", key, "="));
  if (found == std::string_view::npos) return "";
  const std::string_view value = text.substr(found + key.size() + 2);
  const std::string word(value.substr(0, value.find_first_of(" \n")));
  return word == "(null)" ? "" : word;
}

// Folders may have blanks: up to the next " Word=".
std::string FolderField(std::string_view text, std::string_view key) {
  const size_t found = text.find(StrCat(" ", key, "="));
  if (found == std::string_view::npos) return "";
  std::string_view value = text.substr(found + key.size() + 2);
  value = value.substr(0, value.find('\n'));
  const size_t equals = value.find('=');
  if (equals != std::string_view::npos) value = value.substr(0, value.rfind(' ', equals));
  return std::string(Trim(value));
}

// "Nodes=n[1-2] CPU_IDs=0 Mem=100 GRES=gpu:a40:2(IDX:0-1)", once for every kind of host.
void ReadHostGpus(std::string_view text, SlurmJobText* job) {
  for (size_t at = text.find(" Nodes="); at != std::string_view::npos; at = text.find(" Nodes=", at + 1)) {
    std::string_view group = text.substr(at);
    group = group.substr(0, group.find(" Nodes=", 1));
    const auto gres = ParseSlurmGpus(Field(group, "GRES"));
    const auto hosts = ExpandHostList(Field(group, "Nodes"));
    if (!hosts || !gres || gres->count == 0) continue;
    for (const std::string& host : *hosts) job->gpus[host] = gres->count;
    if (job->gpu_type.empty()) job->gpu_type = gres->type;
  }
  if (job->gpus.empty()) return;
  // Hosts of the job that are not named have none.
  if (const auto all = ExpandHostList(job->node_list)) {
    for (const std::string& host : *all) job->gpus.try_emplace(host, 0);
  }
}

}  // namespace

std::optional<SlurmGpus> ParseSlurmGpus(std::string_view text) {
  SlurmGpus sum;
  int depth = 0;
  std::string entry;
  const auto add = [&]() {
    const auto gpus = Trim(entry).empty() ? SlurmGpus{} : ParseGpuEntry(entry);
    entry.clear();
    if (!gpus || sum.count + gpus->count > kMaxGpus) return false;
    sum.count += gpus->count;
    if (sum.type.empty()) sum.type = gpus->type;
    return true;
  };
  for (const char c : text) {  // commas in "(IDX:0,2)" separate nothing
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c != ',' || depth > 0) {
      entry += c;
    } else if (!add()) {
      return std::nullopt;
    }
  }
  if (!add()) return std::nullopt;
  return sum;
}

std::vector<int> ParseTasksPerNode(std::string_view text) {
  std::vector<int> tasks;
  for (const std::string& part : Split(text, ',')) {
    const size_t bracket = part.find("(x");
    const auto count = ParseInt(std::string_view(part).substr(0, bracket));
    std::optional<long long> times = 1;
    if (bracket != std::string::npos) {
      if (!part.ends_with(')')) return {};
      times = ParseInt(std::string_view(part).substr(bracket + 2, part.size() - bracket - 3));
    }
    if (!count || !times || *count < 0 || *count > 1'000'000 || *times < 1 ||
        *times > static_cast<long long>(kMaxHosts - tasks.size())) {
      return {};
    }
    tasks.insert(tasks.end(), static_cast<size_t>(*times), static_cast<int>(*count));
  }
  return tasks;
}

JobLife SlurmLifeFrom(const Captured& answer) {
  bool any = false, holds = false;
  for (const std::string& line : Split(answer.output, '\n')) {
    if (!IsStateWord(Trim(line))) continue;
    any = true;
    holds |= HoldsHosts(Trim(line));
  }
  if (answer.output.find("Invalid job id") != std::string::npos) return JobLife::kOver;
  if (!answer.end.ok()) return JobLife::kNotTold;
  if (any) return holds ? JobLife::kLives : JobLife::kOver;
  // A job that has just ended is not listed any more.
  return Trim(answer.output).empty() ? JobLife::kOver : JobLife::kNotTold;
}

std::vector<SlurmQueueLine> ParseSqueueLines(std::string_view output) {
  std::vector<SlurmQueueLine> lines;
  for (const std::string& line : Split(output, '\n')) {
    const std::vector<std::string> fields = Split(Trim(line), '|');
    if (fields.size() == 3 && IsNumber(fields[0]) && !fields[2].empty()) {
      lines.push_back({fields[0], fields[1], fields[2]});
    }
  }
  return lines;
}

Result<SlurmJobText> ParseScontrolJob(std::string_view output, std::string_view id) {
  const std::string head = StrCat("JobId=", id, " ");
  size_t begin = output.find(head);
  if (begin != 0 && (begin == std::string_view::npos || output[begin - 1] != '\n')) {
    return Fail(ErrorCode::kCorrupt,
                StrCat("scontrol printed '", ToUtf8(Trim(output).substr(0, 100)), "' about job '", id, "'"));
  }
  std::string_view line = output.substr(begin);
  line = line.substr(0, line.find('\n'));
  SlurmJobText job;
  job.id = id;
  // A job's name may hold anything, even what looks like a field: it ends where the user is told.
  const size_t name = line.find(" JobName="), user = line.find(" UserId=");
  if (name != std::string_view::npos && user != std::string_view::npos && name < user) {
    job.name = line.substr(name + 9, user - name - 9);
    line = line.substr(user);
  }
  job.partition = Field(line, "Partition");
  job.account = Field(line, "Account");
  job.node_list = Field(line, "NodeList");
  job.work_dir = FolderField(line, "WorkDir");
  if (const auto gpus = ParseSlurmGpus(Field(line, "TresPerNode"))) job.per_node = *gpus;
  ReadHostGpus(line, &job);
  if (job.gpu_type.empty()) job.gpu_type = job.per_node.type;
  return job;
}

bool IsRankStep(std::string_view step_id, std::string_view tasks) {
  const auto step = ParseInt(step_id), count = ParseInt(tasks);
  return step && *step >= 0 && *step < kFirstSpecialStep && count && *count > 1;
}

}  // namespace overcap
