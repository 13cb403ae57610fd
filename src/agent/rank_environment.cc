// SPDX-License-Identifier: Apache-2.0
#include "agent/rank_environment.h"

#include <algorithm>

#include "base/text.h"

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

std::vector<std::string> OwnVariables(const JobSpec& spec, const AgentOptions& options,
                                      const RankSetting& setting, int rank) {
  std::vector<std::string> own = {
      StrCat("RANK=", rank),
      StrCat("WORLD_SIZE=", spec.resources.world_size()),
      StrCat("LOCAL_RANK=", rank),
      StrCat("LOCAL_WORLD_SIZE=", spec.resources.ranks_per_node),
      "NODE_RANK=0",
      "MASTER_ADDR=127.0.0.1",
      StrCat("MASTER_PORT=", setting.master_port),
      // Set also when empty: a job without GPUs sees none.
      StrCat("CUDA_VISIBLE_DEVICES=", IndexList(options.gpus)),
      StrCat("OVERCAP_JOB_ID=", spec.id),
      StrCat("OVERCAP_ATTEMPT=", options.attempt),
      StrCat("OVERCAP_JOB_DIR=", options.job_dir),
      // The mark by which all that this slot started is found again after its agent was killed.
      StrCat("OVERCAP_AGENT=", spec.id, ".", options.attempt, ".", options.slot),
      // Indices are those of nvidia-smi; CUDA by itself may count in another order.
      "CUDA_DEVICE_ORDER=PCI_BUS_ID",
      "PYTHONUNBUFFERED=1",
      StrCat("PWD=", setting.folder),
  };
  if (!spec.array.empty()) {
    own.push_back(StrCat("OVERCAP_TASK_COUNT=", spec.array.Count()));
    own.push_back("OVERCAP_TASK_ID=");
    own.push_back("OVERCAP_TASK_TRY=");
  }
  return own;
}

}  // namespace

std::vector<std::string> RankEnvironment(std::string_view blob, const JobSpec& spec,
                                         const AgentOptions& options, const RankSetting& setting, int rank) {
  const std::vector<std::string> own = OwnVariables(spec, options, setting, rank);
  std::vector<std::string> out;
  for (size_t at = 0; at < blob.size();) {
    const std::string_view entry = blob.substr(at, blob.find('\0', at) - at);
    at += entry.size() + 1;
    const std::string_view name = NameOf(entry);
    const auto same = [name](const std::string& other) { return NameOf(other) == name; };
    const bool other_job =
        name == "OVERCAP_TASK_ID" || name == "OVERCAP_TASK_COUNT" || name == "OVERCAP_TASK_TRY";
    if (entry.empty() || other_job || std::any_of(own.begin(), own.end(), same)) continue;
    out.emplace_back(entry);
  }
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

void SetTask(std::vector<std::string>* environment, int task, int attempt) {
  environment->at(environment->size() - 2) = StrCat("OVERCAP_TASK_ID=", task);
  environment->back() = StrCat("OVERCAP_TASK_TRY=", attempt);
}

void SetMasterPort(std::vector<std::string>* environment, int port) {
  for (std::string& entry : *environment) {
    if (NameOf(entry) == "MASTER_PORT") entry = StrCat("MASTER_PORT=", port);
  }
}

}  // namespace overcap
