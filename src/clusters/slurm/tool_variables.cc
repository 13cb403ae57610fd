// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/tool_variables.h"

#include <algorithm>

namespace overcap {
namespace {

constexpr std::string_view kUnwantedStarts[] = {"SQUEUE_",  "SINFO_",  "SACCT_",
                                                "SCANCEL_", "SBATCH_", "SLURM_"};
constexpr std::string_view kWanted[] = {"SLURM_CONF",     "SLURM_CONF_SERVER", "SLURM_JWT",
                                        "SLURM_CLUSTERS", "SBATCH_CLUSTERS",   "SBATCH_ACCOUNT",
                                        "SBATCH_QOS",     "SBATCH_PARTITION",  "SBATCH_RESERVATION"};

constexpr std::string_view kBatch[] = {"HOME",      "PATH",   "USER", "LOGNAME",         "SHELL",
                                       "LANG",      "LC_ALL", "TZ",   "LD_LIBRARY_PATH", "XDG_STATE_HOME",
                                       "KRB5CCNAME"};

}  // namespace

bool IsUnwantedToolVariable(std::string_view name) {
  if (std::find(std::begin(kWanted), std::end(kWanted), name) != std::end(kWanted)) return false;
  return std::any_of(std::begin(kUnwantedStarts), std::end(kUnwantedStarts),
                     [&](std::string_view start) { return name.substr(0, start.size()) == start; });
}

bool IsBatchVariable(std::string_view name) {
  const auto among = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return among(kBatch) || among(kWanted);
}

std::vector<std::pair<std::string, std::string>> ToolVariables(std::string_view program) {
  std::vector<std::pair<std::string, std::string>> variables = {{"SLURM_TIME_FORMAT", "%s"},
                                                                {"SLURM_BITSTR_LEN", "0"}};
  if (program == "squeue") variables.emplace_back("TZ", "UTC0");
  return variables;
}

}  // namespace overcap
