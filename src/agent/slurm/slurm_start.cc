// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_start.h"

#include <algorithm>

#include "base/text.h"
#include "model/host_list.h"

namespace overcap {
namespace {

// An unset variable leaves `value` as it is.
Result<void> ReadNumber(const Variables& variables, std::string_view name, int64_t lowest, int64_t* value) {
  const std::string_view text = variables.Get(name);
  if (text.empty()) return {};
  const auto number = ParseInt(text);
  if (!number || *number < lowest)
    return Fail(ErrorCode::kUsage, StrCat("variable '", name, "' is no number of Slurm's: ", Quoted(text)));
  *value = *number;
  return {};
}

bool IsOfSlurm(std::string_view name) {
  constexpr std::string_view kNames[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                         "HIP_VISIBLE_DEVICES",  "GPU_DEVICE_ORDINAL",
                                         "ZE_AFFINITY_MASK",     "TMPDIR"};
  return name.starts_with("SLURM_") || name.starts_with("SLURMD_") ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

std::string SlurmStart::Name() const {
  return array_id != 0 ? StrCat(array_id, "_", task) : StrCat(job_id);
}

Result<SlurmStart> ReadSlurmStart(const Variables& variables) {
  SlurmStart start;
  int64_t task = -1, restart = 0, end = 0;
  OC_TRY_VOID(ReadNumber(variables, "SLURM_JOB_ID", 1, &start.job_id));
  OC_TRY_VOID(ReadNumber(variables, "SLURM_ARRAY_JOB_ID", 1, &start.array_id));
  OC_TRY_VOID(ReadNumber(variables, "SLURM_ARRAY_TASK_ID", 0, &task));
  OC_TRY_VOID(ReadNumber(variables, "SLURM_RESTART_COUNT", 0, &restart));
  OC_TRY_VOID(ReadNumber(variables, "SLURM_JOB_END_TIME", 0, &end));
  if (start.job_id == 0)
    return Fail(ErrorCode::kUsage, "variable 'SLURM_JOB_ID' is not set: this is no job of Slurm");
  if ((start.array_id != 0) != (task >= 0))
    return Fail(ErrorCode::kUsage,
                "of SLURM_ARRAY_JOB_ID and SLURM_ARRAY_TASK_ID only one is set: this is no job of Slurm");
  start.task = static_cast<int>(task);
  start.restart = static_cast<int>(restart);
  start.end_us = end * 1'000'000;
  OC_TRY(nodes, ExpandHostList(variables.Get("SLURM_JOB_NODELIST")));
  start.nodes = std::move(nodes);
  return start;
}

std::vector<std::string> VariablesOfSlurm(const Variables& variables) {
  std::vector<std::string> found;
  for (const std::string& entry : variables.entries()) {
    if (IsOfSlurm(std::string_view(entry).substr(0, entry.find('=')))) found.push_back(entry);
  }
  return found;
}

}  // namespace overcap
