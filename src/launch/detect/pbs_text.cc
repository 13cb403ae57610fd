// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/pbs_text.h"

#include <algorithm>
#include <cctype>
#include <ctime>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "launch/detect/host_name.h"
#include "sys/json_in_text.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

constexpr int kMaxCount = 1'000'000;
constexpr int kUnknownJobStatus = 153, kFinishedJobStatus = 35;  // of qstat

std::string Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// "Sun Nov 15 01:10:44 2026", local time.
int64_t TimeOf(const std::string& text) {
  std::tm when{};
  if (strptime(text.c_str(), "%a %b %d %H:%M:%S %Y", &when) == nullptr) return 0;
  when.tm_isdst = -1;
  return static_cast<int64_t>(mktime(&when));
}

PbsJobText ReadJob(const std::string& id, const Json& object) {
  PbsJobText job;
  job.id = id;
  job.name = Text(object, "Job_Name");
  job.owner = Text(object, "Job_Owner");
  job.owner = job.owner.substr(0, job.owner.find('@'));
  job.state = Text(object, "job_state");
  job.queue = Text(object, "queue");
  job.exec_host = Text(object, "exec_host");
  job.exec_vnode = Text(object, "exec_vnode");
  job.start = TimeOf(Text(object, "stime"));
  if (const auto list = object.find("Resource_List"); list != object.end() && list->is_object()) {
    job.select = Text(*list, "select");
  }
  if (const auto list = object.find("Variable_List"); list != object.end() && list->is_object()) {
    for (const auto& [name, value] : list->items()) {
      if (name.starts_with("PBS_O_") && value.is_string()) job.o_variables[name] = value.get<std::string>();
    }
  }
  return job;
}

// The value of ":key=N" in "ml1:ncpus=2:ngpus=4"; -1 when it is not there.
int CountIn(std::string_view chunk, std::string_view key) {
  for (const std::string& part : Split(chunk, ':')) {
    if (!part.starts_with(key) || part.size() <= key.size() || part[key.size()] != '=') continue;
    const auto count = ParseInt(std::string_view(part).substr(key.size() + 1));
    if (count && *count >= 0 && *count <= kMaxCount) return static_cast<int>(*count);
  }
  return -1;
}

// mpiprocs of every chunk of "3:ncpus=2:mpiprocs=2+1:ncpus=4", in order; at most `limit`.
std::vector<int> SlotsOfChunks(const std::string& select, size_t limit) {
  std::vector<int> slots;
  for (const std::string& chunk : Split(select, '+')) {
    const auto times = ParseInt(std::string_view(chunk).substr(0, chunk.find(':'))).value_or(1);
    const int mpiprocs = CountIn(chunk, "mpiprocs");
    for (long long i = 0; i < times && slots.size() < limit; ++i) {
      slots.push_back(mpiprocs < 0 ? 1 : mpiprocs);
    }
  }
  slots.resize(limit, 1);
  return slots;
}

// "(a:ncpus=1:ngpus=2+b:ngpus=2)+(c:ncpus=1)" -> {4, -1}: a chunk may lie on several vnodes of a host.
std::vector<int> GpusOfChunks(std::string_view exec_vnode) {
  std::vector<int> gpus;
  while (!exec_vnode.empty()) {
    const bool grouped = exec_vnode.front() == '(';
    const size_t end = std::min(exec_vnode.find(grouped ? ')' : '+'), exec_vnode.size());
    int sum = -1;
    for (const std::string& vnode : Split(exec_vnode.substr(grouped, end - grouped), '+')) {
      if (const int count = CountIn(vnode, "ngpus"); count >= 0) {
        sum = std::min(kMaxCount, std::max(sum, 0) + count);
      }
    }
    gpus.push_back(sum);
    const size_t next = std::min(exec_vnode.find('+', end), exec_vnode.size());
    exec_vnode.remove_prefix(std::min(next + 1, exec_vnode.size()));
  }
  return gpus;
}

}  // namespace

Result<std::vector<PbsJobText>> ParseQstat(std::string_view output) {
  OC_TRY(json, JsonObjectIn(output, "qstat"));
  std::vector<PbsJobText> jobs;
  const auto all = json.find("Jobs");
  if (all == json.end() || !all->is_object()) return jobs;  // so it says that there are none
  for (const auto& [id, object] : all->items()) {
    if (IsPbsJobId(id) && object.is_object()) jobs.push_back(ReadJob(id, object));
  }
  return jobs;
}

Result<std::vector<AllocatedHost>> HostsOf(const PbsJobText& job) {
  const std::vector<std::string> chunks = Split(Trim(job.exec_host), '+');
  const std::vector<int> slots = SlotsOfChunks(job.select, chunks.size());
  std::vector<int> gpus = GpusOfChunks(Trim(job.exec_vnode));
  gpus.resize(chunks.size(), -1);
  const bool any_gpus = std::ranges::any_of(gpus, [](int count) { return count >= 0; });
  HostTable hosts;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const std::string_view chunk = Trim(chunks[i]);
    const std::string_view name = chunk.substr(0, chunk.find_first_of("/:"));
    if (const std::string problem = HostNameProblem(name); !problem.empty()) {
      return Fail(ErrorCode::kCorrupt, StrCat("exec_host ", Quoted(job.exec_host, 100), ": ", problem));
    }
    const auto [host, first] = hosts.Add(name);
    if (first && any_gpus) host->gpus = 0;
    host->slots = std::min(host->slots + slots[i], kMaxCount);
    if (any_gpus) host->gpus = std::min(host->gpus + std::max(0, gpus[i]), kMaxCount);
  }
  return hosts.Take();
}

std::string NodeFileText(const std::vector<AllocatedHost>& hosts) {
  std::string text;
  for (const AllocatedHost& host : hosts) {
    for (int i = 0; i < std::max(1, host.slots); ++i) text += StrCat(host.name, "\n");
  }
  return text;
}

JobLife PbsLifeFrom(const Captured& answer) {
  if (answer.end.ok()) return JobLife::kLives;
  const bool over =
      answer.end.exit_status == kUnknownJobStatus || answer.end.exit_status == kFinishedJobStatus;
  return over ? JobLife::kOver : JobLife::kNotTold;
}

bool IsPbsJobId(std::string_view id) {
  return !id.empty() && id.size() < 200 && id.front() >= '0' && id.front() <= '9' &&
         std::ranges::all_of(id, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '[' || c == ']' || c == '-' || c == '_';
         });
}

}  // namespace overcap
