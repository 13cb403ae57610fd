// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/gpu_probe.h"

#include "base/text.h"
#include "model/gpu_type.h"
#include "sys/nvidia_smi.h"
#include "sys/nvml.h"
#include "sys/rocm_smi.h"
#include "sys/xpu_smi.h"

namespace overcap {
namespace {

constexpr std::chrono::milliseconds kSmiDeadline{5000};

using Gpus = Result<std::vector<GpuFacts>>;

// kNotFound when the program is not there: that is no problem.
Gpus Ask(Programs& programs, const std::vector<std::string>& argv, Gpus (*parse)(std::string_view)) {
  if (programs.Find(argv[0]).empty()) return Fail(ErrorCode::kNotFound, StrCat("there is no ", argv[0]));
  OC_TRY(answer, programs.Run(argv, kSmiDeadline));
  if (!answer.end.ok()) {
    const std::string words = ToUtf8(Trim(answer.output).substr(0, 200));
    return Fail(ErrorCode::kUnavailable,
                StrCat(argv[0], " failed with status ", answer.end.exit_status, ": ", words));
  }
  return parse(answer.output);
}

const std::vector<std::string>& NvidiaSmiCommand() {
  static const std::vector<std::string> kCommand = {"nvidia-smi", "--query-gpu=index,name,uuid,memory.total",
                                                    "--format=csv,noheader,nounits"};
  return kCommand;
}

// True when this source has found GPUs: the next ones need not be asked.
bool Take(const Gpus& gpus, const char* how, ProbedGpus* probed) {
  if (!gpus) {
    if (gpus.error().code != ErrorCode::kNotFound) probed->problems.push_back(gpus.error().message);
    return false;
  }
  probed->count = static_cast<int>(gpus->size());
  probed->how = how;
  if (!gpus->empty()) probed->type = NormalGpuType(gpus->front().name);
  return !gpus->empty();
}

// CUDA reads a list up to the first entry that means no device.
int CountEntries(std::string_view mask) {
  int count = 0;
  for (const std::string& entry : Split(mask, ',')) {
    const std::string_view name = Trim(entry);
    if (name.empty() || name.starts_with('-') || name == "NoDevFiles") break;
    ++count;
  }
  return count;
}

}  // namespace

ProbedGpus ProbeGpus(Programs& programs) {
  ProbedGpus probed;
  if (Take(GpusFromNvml(), "nvml", &probed)) return probed;
  if (Take(Ask(programs, NvidiaSmiCommand(), ParseNvidiaSmi), "nvidia-smi", &probed)) return probed;
  if (Take(Ask(programs, RocmSmiCommand(), ParseRocmSmi), "rocm-smi", &probed)) return probed;
  probed.counts_cards = Take(Ask(programs, XpuSmiCommand(), ParseXpuSmi), "xpu-smi", &probed);
  return probed;
}

std::optional<VisibleGpus> VisibleGpusOf(const Variables& variables) {
  for (const char* name :
       {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}) {
    if (variables.Has(name)) return VisibleGpus{CountEntries(variables.Get(name)), name};
  }
  return std::nullopt;
}

}  // namespace overcap
