// SPDX-License-Identifier: Apache-2.0
// What this machine has, as far as the system tells; what users declare instead is the configuration's
// business.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace overcap {

struct GpuFacts {
  int index = 0;     // in the order of the PCI bus; CUDA counts so with CUDA_DEVICE_ORDER=PCI_BUS_ID
  std::string name;  // "NVIDIA A40"
  std::string uuid;
  int64_t memory_bytes = 0;  // 0: not told
  bool operator==(const GpuFacts&) const = default;
};

struct MachineFacts {
  std::string host;
  int cpus = 1;                       // that this process may use: affinity and cgroup quota are honoured
  std::vector<int> cpu_ids;           // those of the affinity, ascending; at least `cpus`, or empty: not told
  int64_t mem_bytes = 0;              // the machine's, or the cgroup's limit when that is lower
  std::vector<GpuFacts> gpus;         // all of them, whatever CUDA_VISIBLE_DEVICES says
  std::string how = "none";           // who told about the GPUs: "nvml", "nvidia-smi" or "none"
  std::vector<std::string> problems;  // one line each, for `doctor`
};

// Takes microseconds on a machine without GPUs; up to 5 s when a broken driver makes nvidia-smi hang.
MachineFacts DetectMachine();

// The processors that a process may use (0: this one), ascending; empty when the kernel does not tell.
std::vector<int> AffinityCpus(pid_t pid = 0);

// The lowest limits of this process's control group and those above it; -1 when there is none.
int64_t MemoryLimitBytes();
double CpuQuota();  // in processors

}  // namespace overcap
