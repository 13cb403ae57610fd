// SPDX-License-Identifier: Apache-2.0
// Slurm's way to write many host names in a few: "rack[1-2]n[01-16],login3,gpu-[01-02]-ib".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

constexpr size_t kMaxHosts = 1'000'000;

// Every host in the order of `scontrol show hostnames`, repeated ones kept. White space around a name is
// dropped, empty entries too ("a,,b"). kUsage names what is wrong ("host list 'n[1-': bracket is not
// closed"), also for a list of more than kMaxHosts.
Result<std::vector<std::string>> ExpandHostList(std::string_view list);

// The shortest such text that expands to the same hosts in the same order. Any names will do.
std::string CompressHostList(const std::vector<std::string>& hosts);

}  // namespace overcap
