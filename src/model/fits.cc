// SPDX-License-Identifier: Apache-2.0
#include "model/fits.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "model/gpu_type.h"
#include "model/request_limits.h"

namespace overcap {
namespace {

std::string Count(int count, std::string_view noun) {
  return StrCat(count, " ", noun, count == 1 ? "" : "s");
}

tl::unexpected<Error> TooMuch(const std::string& asked, const std::string& there, std::string hint = {}) {
  return Fail(ErrorCode::kUsage, StrCat("asks for ", asked, ", this machine has ", there), std::move(hint));
}

// "4 x rtx_6000, 1 x a40", in the order of their first GPU.
std::string TypesOf(const Machine& machine) {
  std::vector<std::pair<std::string, int>> types;
  for (const Gpu& gpu : machine.gpus) {
    const auto known =
        std::find_if(types.begin(), types.end(), [&](const auto& type) { return type.first == gpu.type; });
    if (known == types.end()) {
      types.emplace_back(gpu.type, 1);
    } else {
      ++known->second;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [type, count] : types) parts.push_back(StrCat(count, " x ", type));
  return Join(parts, ", ");
}

Result<void> CheckGpus(const Resources& resources, const Machine& machine) {
  const int there = static_cast<int>(machine.gpus.size());
  if (resources.gpus > there) {
    return TooMuch(Count(resources.gpus, "GPU"), there == 0 ? "none" : StrCat(there),
                   there == 0 ? "-n 0 runs without GPUs; `overcap doctor` says what was looked for" : "");
  }
  if (resources.gpu_type.empty()) return {};
  int of_type = 0;
  for (const Gpu& gpu : machine.gpus) {
    OC_TRY(matches, GpuTypeMatches(resources.gpu_type, gpu.type));
    of_type += matches ? 1 : 0;
  }
  if (resources.gpus <= of_type) return {};
  return TooMuch(StrCat(Count(resources.gpus, "GPU"), " of type '", resources.gpu_type, "'"),
                 StrCat(of_type, " (", TypesOf(machine), ")"));
}

// Each rank is a process with a log; more of them would only use up processes and files.
Result<void> CheckRanks(const Resources& resources, const Machine& machine) {
  const int64_t ranks = int64_t{resources.ranks_per_node} * resources.nodes;
  const int64_t most = int64_t{kMaxRanksPerCpu} * machine.cpus;
  if (machine.cpus <= 0 || ranks <= most) return {};
  return Fail(ErrorCode::kUsage,
              StrCat("asks for ", ranks, " ranks on this machine, at most ", most,
                     " are possible: ", kMaxRanksPerCpu, " for each of its ", machine.cpus, " processors"),
              "--ranks-per-node takes a smaller number");
}

}  // namespace

Result<void> CheckFits(const Resources& asked, const Machine& machine) {
  if (asked.nodes > 1 && !asked.elastic()) {
    return Fail(ErrorCode::kUsage, StrCat("asks for ", asked.nodes, " nodes, this machine is one"),
                "leave out --nodes, or choose another cluster");
  }
  // The nodes of an elastic job are agents on this one machine; the least of them must have room.
  Resources resources = asked;
  resources.cpus = static_cast<int>(std::min<int64_t>(int64_t{asked.cpus} * asked.nodes, INT_MAX));
  resources.mem_bytes = asked.mem_bytes * asked.nodes;
  OC_TRY_VOID(CheckGpus(resources, machine));
  OC_TRY_VOID(CheckRanks(resources, machine));
  if (resources.cpus > machine.cpus) return TooMuch(Count(resources.cpus, "CPU"), StrCat(machine.cpus));
  if (machine.mem_bytes > 0 && resources.mem_bytes > machine.mem_bytes) {
    return TooMuch(StrCat(FormatBytes(resources.mem_bytes), " of memory"), FormatBytes(machine.mem_bytes));
  }
  return {};
}

}  // namespace overcap
