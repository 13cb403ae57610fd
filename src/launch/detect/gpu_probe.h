// SPDX-License-Identifier: Apache-2.0
// The GPUs of this host by what its drivers say.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/detect/programs.h"
#include "sys/variables.h"

namespace overcap {

struct ProbedGpus {
  int count = -1;                     // -1: nobody could be asked
  std::string type;                   // normalised ("a100"); "" when not told
  std::string how;                    // "nvml", "nvidia-smi", "rocm-smi", "xpu-smi"
  bool counts_cards = false;          // cards, each of which may be several GPUs to a program (tiles)
  std::vector<std::string> problems;  // one line each: what is there and does not work
};
using GpuProbe = std::function<ProbedGpus()>;

// NVML, nvidia-smi, rocm-smi, xpu-smi: the first that finds a GPU. Takes microseconds where there is no
// driver.
ProbedGpus ProbeGpus(Programs& programs);

// What CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES or ZE_AFFINITY_MASK leaves: the first
// of them that is set. An empty value hides all GPUs, as does -1 all that follow.
struct VisibleGpus {
  int count = 0;
  std::string variable;
};
std::optional<VisibleGpus> VisibleGpusOf(const Variables& variables);

}  // namespace overcap
