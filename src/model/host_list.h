// SPDX-License-Identifier: Apache-2.0
// Slurm's way to write many host names in a few: "rack[1-2]n[01-16],login3,gpu-[01-02]-ib". Beyond what
// Slurm 22.05 reads, text may follow the last bracket, and a range may have a step: "n[0-8:2]", "n[0-8/2]".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

constexpr size_t kMaxHosts = 1'000'000;

// Every host in the order of `scontrol show hostnames`, repeated ones kept. Commas and white space stand
// between names, empty entries are dropped ("a,,b"). kUsage names what is wrong ("host list 'n[1-': bracket
// is not closed"), also for a list of more than kMaxHosts. tests/data/slurm-22.05.8/hostlists.txt has the
// cases where Slurm itself is odd.
Result<std::vector<std::string>> ExpandHostList(std::string_view list);

enum class HostListStyle {
  kFull,   // all that ExpandHostList() reads
  kSlurm,  // only what Slurm reads as well: for srun's and sbatch's --nodelist
};

// A short such text, as `scontrol show hostlist` writes it or shorter, that expands to the same hosts in the
// same order. A name with a comma, white space or a bracket in it cannot be written so that it is read back.
std::string CompressHostList(const std::vector<std::string>& hosts,
                             HostListStyle style = HostListStyle::kFull);

}  // namespace overcap
