// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/partition_text.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/slurm_time.h"

namespace overcap {
namespace {

std::vector<std::string> NamesOf(std::string_view value) {
  if (value.empty() || value == "ALL" || value == "(null)" || value == "N/A") return {};
  return Split(value, ',');
}

int64_t LimitSeconds(std::string_view value) {
  const auto seconds = ParseSlurmDuration(value);
  return seconds && *seconds != kSlurmUnlimited ? *seconds : 0;
}

void TakeField(std::string_view name, std::string_view value, SlurmPartition* partition) {
  if (name == "PartitionName") {
    partition->name = value;
  } else if (name == "Default") {
    partition->is_default = value == "YES";
  } else if (name == "State") {
    partition->up = value == "UP";
  } else if (name == "MaxTime") {
    partition->max_time_s = LimitSeconds(value);
  } else if (name == "GraceTime") {
    const auto seconds = ParseInt(value);
    partition->grace_s = seconds && *seconds >= 0 && *seconds <= INT32_MAX ? *seconds : 0;
  } else if (name == "PriorityTier") {
    const auto tier = ParseInt(value);
    partition->priority_tier = tier && *tier >= 0 && *tier <= 65535 ? static_cast<int>(*tier) : 0;
  } else if (name == "PreemptMode") {
    partition->preempt_mode = value;
  } else if (name == "QoS") {
    partition->qos = value == "N/A" || value == "(null)" ? std::string_view() : value;
  } else if (name == "AllowAccounts") {
    partition->allowed_accounts = NamesOf(value);
  } else if (name == "AllowQos") {
    partition->allowed_qos = NamesOf(value);
  } else if (name == "DenyAccounts") {
    partition->denied_accounts = NamesOf(value);
  }
}

}  // namespace

std::vector<std::string> PartitionCommand() {
  return {"scontrol", "--all", "--oneliner", "show", "partition"};
}

Result<std::vector<SlurmPartition>> ParsePartitions(std::string_view text) {
  constexpr std::string_view kStart = "PartitionName=";
  const auto corrupt = [](size_t row) {
    return Fail(ErrorCode::kCorrupt, StrCat("scontrol: the answer is cut off or garbled in row ", row + 1));
  };
  std::vector<SlurmPartition> partitions;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return corrupt(partitions.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (line.empty()) continue;
    if (line.substr(0, kStart.size()) != kStart) return corrupt(partitions.size());
    SlurmPartition partition;
    for (const std::string& field : Split(line, ' ')) {
      const size_t equals = std::min(field.find('='), field.size());
      if (equals == field.size()) continue;
      TakeField(std::string_view(field).substr(0, equals), std::string_view(field).substr(equals + 1),
                &partition);
    }
    if (partition.name.empty()) return corrupt(partitions.size());
    partitions.push_back(std::move(partition));
  }
  return partitions;
}

}  // namespace overcap
