// SPDX-License-Identifier: Apache-2.0
#include "agent/rank_environment.h"

#include <algorithm>
#include <numeric>

#include "agent/script_tools.h"
#include "base/text.h"
#include "launch/rank_variables.h"
#include "sys/variables.h"

namespace overcap {
namespace {

std::string_view NameOf(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

std::string IndexList(const std::vector<int>& indices) {
  std::vector<std::string> words;
  for (int index : indices) words.push_back(std::to_string(index));
  return Join(words, ",");
}

void SetRank(const JobSpec& spec, const AgentOptions& options, const RankSetting& setting, int rank,
             std::vector<std::string>* all) {
  Variables variables(std::move(*all));
  const int ranks = spec.resources.ranks_per_node;
  const RankPlace place{rank, spec.resources.world_size(), rank, ranks, 0, ""};
  SetRankVariables({place, "127.0.0.1", setting.master_port, setting.cpus, RunOf(spec, options)}, &variables);
  // Programs that look for these first (Lightning) must not take all ranks for the batch script's one task.
  if (!setting.cluster.empty()) variables.Set("SLURM_PROCID", std::to_string(rank));
  if (!setting.cluster.empty()) variables.Set("SLURM_LOCALID", std::to_string(rank));
  *all = variables.entries();
}

// What SetTask fills in is last.
void AddTask(const JobSpec& spec, std::vector<std::string>* own) {
  own->push_back(StrCat("OVERCAP_TASK_COUNT=", spec.array.Count()));
  for (const SweepAxis& axis : spec.sweep) own->push_back(StrCat(axis.name, "="));
  own->push_back("OVERCAP_STATE_DIR=");
  own->push_back("OVERCAP_TASK_ID=");
  own->push_back("OVERCAP_TASK_TRY=");
}

std::vector<std::string> OwnVariables(const JobSpec& spec, const AgentOptions& options,
                                      const RankSetting& setting) {
  std::vector<std::string> own;
  // Set also when empty: a job without GPUs sees none.
  if (setting.cluster.empty()) {
    std::vector<int> seen = options.gpus;
    if (options.private_gpus) std::iota(seen.begin(), seen.end(), 0);
    own.push_back(StrCat("CUDA_VISIBLE_DEVICES=", IndexList(seen)));
    // For `overcap exec`, which runs outside of the job's control group and sees all GPUs.
    if (options.private_gpus) own.push_back(StrCat("OVERCAP_GPU_INDICES=", IndexList(options.gpus)));
  }
  own.push_back(StrCat("OVERCAP_JOB_ID=", spec.id));
  own.push_back(StrCat("OVERCAP_ATTEMPT=", options.attempt));
  own.push_back(StrCat("OVERCAP_JOB_DIR=", options.job_dir));
  // The mark by which all that this slot started is found again after its agent was killed.
  own.push_back(StrCat("OVERCAP_AGENT=", spec.id, ".", options.attempt, ".", options.slot));
  // Indices are those of nvidia-smi; CUDA by itself may count in another order.
  own.push_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  own.push_back("PYTHONUNBUFFERED=1");
  own.push_back(StrCat("PWD=", setting.folder));
  if (spec.array.empty()) {
    own.push_back(StrCat("OVERCAP_STATE_DIR=", StateFolder(options)));
  } else {
    AddTask(spec, &own);
  }
  return own;
}

bool Names(const std::vector<std::string>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(),
                     [name](const std::string& entry) { return NameOf(entry) == name; });
}

// Of the job in which the submitter was, if any: nothing of it is true here.
bool IsOfOtherJob(std::string_view name) {
  return name == "OVERCAP_TASK_ID" || name == "OVERCAP_TASK_COUNT" || name == "OVERCAP_TASK_TRY" ||
         name == "OVERCAP_GPU_INDICES";
}

void Replace(std::vector<std::string>* environment, std::string_view name, int value) {
  for (std::string& entry : *environment) {
    if (NameOf(entry) == name) entry = StrCat(name, "=", value);
  }
}

}  // namespace

TorchRun RunOf(const JobSpec& spec, const AgentOptions& options) {
  // Tasks of an array share the attempt's folder.
  return {.id = OwnRunId(spec.id),
          .errors = spec.array.empty() ? StrCat(options.job_dir, "/attempt-", options.attempt) : "",
          .restarts = options.attempt - 1,
          .max_restarts = spec.max_restarts,
          .nodes = spec.resources.nodes};
}

std::string StateFolder(const AgentOptions& options) {
  return options.job_dir + "/state";
}

std::string StateFolder(const AgentOptions& options, int task) {
  return StrCat(StateFolder(options), "/task-", task);
}

std::vector<std::string> RankEnvironment(std::string_view blob, const JobSpec& spec,
                                         const AgentOptions& options, const RankSetting& setting, int rank) {
  const std::vector<std::string> own = OwnVariables(spec, options, setting);
  std::vector<std::string> out;
  for (size_t at = 0; at < blob.size();) {
    const std::string_view entry = blob.substr(at, blob.find('\0', at) - at);
    at += entry.size() + 1;
    const std::string_view name = NameOf(entry);
    if (entry.empty() || IsOfOtherJob(name) || Names(own, name) || Names(setting.cluster, name)) continue;
    out.emplace_back(entry);
  }
  for (const std::string& entry : setting.cluster) {
    if (!Names(own, NameOf(entry))) out.push_back(entry);
  }
  if (!spec.batch) SetRank(spec, options, setting, rank, &out);
  if (setting.script_tools) {
    Variables variables(std::move(out));
    SetScriptVariables(spec, options, setting.folder, &variables);
    out = variables.entries();
  }
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

void SetTask(std::vector<std::string>* environment, const JobSpec& spec, const AgentOptions& options,
             int task, int attempt) {
  const size_t last = environment->size() - 1;
  environment->at(last) = StrCat("OVERCAP_TASK_TRY=", attempt);
  environment->at(last - 1) = StrCat("OVERCAP_TASK_ID=", task);
  environment->at(last - 2) = StrCat("OVERCAP_STATE_DIR=", StateFolder(options, task));
  Replace(environment, "TORCHELASTIC_RESTART_COUNT", attempt - 1);
  if (HasScriptTools(spec, options)) {
    Variables variables(std::move(*environment));
    SetScriptTask(spec, task, &variables);
    *environment = variables.entries();
  }
  if (spec.sweep.empty()) return;
  const std::vector<std::string> values = SweepVariables(spec.sweep, spec.array.PositionOf(task));
  std::copy(values.begin(), values.end(),
            environment->end() - 3 - static_cast<std::ptrdiff_t>(values.size()));
}

void SetMasterPort(std::vector<std::string>* environment, int port) {
  Replace(environment, "MASTER_PORT", port);
}

}  // namespace overcap
