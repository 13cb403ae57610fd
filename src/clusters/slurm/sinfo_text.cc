// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/sinfo_text.h"

#include <charconv>
#include <unordered_map>

#include "base/text.h"
#include "clusters/slurm/marked_rows.h"
#include "clusters/slurm/tres_text.h"

namespace overcap {
namespace {

// In the order of the columns.
enum Column {
  kName,
  kPartition,
  kState,
  kCpus,
  kLoad,
  kMemory,
  kAllocMem,
  kFreeMem,
  kGres,
  kGresUsed,
  kFeatures,
  kAvailable,
  kPlainColumns,
  kReason = kPlainColumns,
};

const RowColumns& Columns() {
  static const RowColumns columns = {
      {"NodeList", "Partition", "StateComplete", "CPUsState", "CPUsLoad", "Memory", "AllocMem", "FreeMem",
       "Gres", "GresUsed", "Features", "Available"},
      {"Reason"}};
  return columns;
}

double ReadLoad(std::string_view text) {
  double load = -1;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), load, std::chars_format::fixed);
  return error == std::errc() && end == text.data() + text.size() && load >= 0 ? load : -1;
}

// "allocated/idle/other/total".
void TakeCpus(std::string_view text, SlurmNode* node) {
  const std::vector<std::string> parts = Split(text, '/');
  if (parts.size() != 4) return;
  const auto number = [](const std::string& digits) {
    const auto value = ParseInt(digits);
    return value && *value >= 0 && *value <= 1'000'000 ? static_cast<int>(*value) : 0;
  };
  node->cpus_used = number(parts[0]);
  node->cpus = number(parts[3]);
}

SlurmNode ReadNode(const std::vector<std::string_view>& fields) {
  SlurmNode node;
  node.name = fields[kName];
  node.raw_state = fields[kState];
  node.state = ReadNodeState(fields[kState]);
  TakeCpus(fields[kCpus], &node);
  node.load = ReadLoad(fields[kLoad]);
  node.mem_bytes = ParseSlurmMemory(fields[kMemory]).value_or(0);
  node.mem_used = ParseSlurmMemory(fields[kAllocMem]).value_or(0);
  node.mem_free = ParseSlurmMemory(fields[kFreeMem]).value_or(-1);
  node.gpus = ParseGpuGres(fields[kGres], fields[kGresUsed]);
  if (fields[kFeatures] != "(null)" && !fields[kFeatures].empty())
    node.features = Split(fields[kFeatures], ',');
  if (fields[kReason] != "none") node.reason = fields[kReason];
  return node;
}

}  // namespace

int SlurmNode::GpuTotal() const {
  int sum = 0;
  for (const SlurmNodeGpus& kind : gpus) sum += kind.total;
  return sum;
}

int SlurmNode::GpuUsed() const {
  int sum = 0;
  for (const SlurmNodeGpus& kind : gpus) sum += kind.used;
  return sum;
}

std::vector<std::string> SinfoCommand(std::string_view mark) {
  return {"sinfo",  "--noheader",  "--all",    "--local",
          "--Node", "--noconvert", "--Format", FormatColumns(Columns(), mark)};
}

Result<SinfoText> ParseSinfo(std::string_view text, std::string_view mark) {
  SinfoText result;
  std::unordered_map<std::string_view, size_t> places;
  MarkedRows rows(text, mark, kPlainColumns, Columns().free.size());
  std::vector<std::string_view> fields;
  while (true) {
    auto more = rows.Next(&fields);
    if (!more) return Fail(more.error().code, StrCat("sinfo: ", more.error().message));
    if (!*more) return result;
    if (fields[kName].empty()) return Fail(ErrorCode::kCorrupt, "sinfo: a node has no name");
    // A node stands there once for every partition.
    const auto [place, is_new] = places.try_emplace(fields[kName], result.nodes.size());
    if (is_new) result.nodes.push_back(ReadNode(fields));
    std::string_view partition = fields[kPartition];
    if (!partition.empty() && partition.back() == '*') {
      partition.remove_suffix(1);
      result.default_partition = partition;
    }
    if (partition.empty() || partition == "N/A") continue;
    result.nodes[place->second].partitions.emplace_back(partition);
    result.partition_up[std::string(partition)] = fields[kAvailable] == "up";
  }
}

}  // namespace overcap
