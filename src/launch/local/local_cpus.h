// SPDX-License-Identifier: Apache-2.0
// Which processors each rank of a host may use when we start the ranks ourselves.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

struct CpuLayout {
  std::map<int, int> core_of;          // processor -> lowest processor of its core; missing: a core by itself
  std::vector<std::vector<int>> numa;  // processors of each NUMA node; empty: not told
};

// As the system tells below `folder`; what it does not tell is missing.
CpuLayout ReadCpuLayout(const std::vector<int>& cpu_ids, const std::string& folder = "/sys/devices/system");

// The processors of local rank i out of `cpu_ids` (those that may be used), for
//   "none" or ""          empty: nobody is bound
//   "cores"               an equal share of whole cores each, one after the other
//   "threads", "depth"    an equal share of the processors each, by their numbers
//   "depth:N"             N processors each
//   "numa"                the NUMA node of its share of the ranks
//   "list:0-3:4-7"        those listed, one entry per rank; "verbose," before it is PALS's and changes
//   nothing
// kUsage for anything else, for too few processors, and for a listed one that may not be used.
Result<std::vector<std::vector<int>>> CpusPerLocalRank(std::string_view spec, int ranks,
                                                       const std::vector<int>& cpu_ids,
                                                       const CpuLayout& layout);
// The same with the layout of this machine.
Result<std::vector<std::vector<int>>> CpusPerLocalRank(std::string_view spec, int ranks,
                                                       const std::vector<int>& cpu_ids);

}  // namespace overcap
