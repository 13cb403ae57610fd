// SPDX-License-Identifier: Apache-2.0
// "billing=4,cpu=4,gres/gpu:a40=2,gres/gpu=2,mem=400M,node=2": what a job has or asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

struct GpuCount {
  std::string type;  // as Slurm calls it; empty: not told
  int count = 0;
  bool operator==(const GpuCount&) const = default;
};

struct SlurmTres {
  int nodes = 0, cpus = 0;
  int64_t mem_bytes = 0;
  int gpus = 0;                     // of all types
  std::vector<GpuCount> gpu_types;  // those whose type is told; may be fewer than `gpus`
  bool operator==(const SlurmTres&) const = default;
};

// Entries that are not understood are left out.
SlurmTres ParseTres(std::string_view text);

// What squeue's tres-per-job, -node and -task say ("gres:gpu:a40:2", "gres/gpu:2"), `times` over.
void AddAskedGpus(std::string_view text, int times, SlurmTres* tres);

// "400M", "1.5G", "16000" (MiB): Slurm's way to write memory.
std::optional<int64_t> ParseSlurmMemory(std::string_view text);

}  // namespace overcap
