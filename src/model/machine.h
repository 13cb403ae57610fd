// SPDX-License-Identifier: Apache-2.0
// What one machine has to give.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace overcap {

struct Gpu {
  int index = 0;     // what CUDA_VISIBLE_DEVICES takes
  std::string type;  // normalised: "a40"
  std::string uuid;  // empty when declared in the configuration
  int64_t memory_bytes = 0;
  bool operator==(const Gpu&) const = default;
};

struct Machine {
  std::string host;
  int cpus = 1;
  int64_t mem_bytes = 0;
  std::vector<Gpu> gpus;
  bool declared = false;  // by a configuration, at least in part: what was detected does not replace it
  // What the kernel calls the CPUs, ascending, at least `cpus` of them: in a cpuset they are not 0, 1, 2...
  // Empty: they are 0 to cpus - 1, or nobody knows.
  std::vector<int> cpu_ids = {};
  bool operator==(const Machine&) const = default;
};

}  // namespace overcap
