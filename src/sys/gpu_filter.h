// SPDX-License-Identifier: Apache-2.0
// Which of the machine's NVIDIA GPUs (/dev/nvidia0, /dev/nvidia1, ...) a control group may open. What all of
// them share (/dev/nvidiactl, nvidia-uvm, ...) and every other device stay as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

constexpr int kNvidiaMajor = 195;
constexpr int kMostNvidiaGpus = 254;  // minors above are nvidia-modeset and nvidiactl

// The device program (BPF) of a v2 group, one instruction per element.
std::vector<uint64_t> GpuProgram(const std::vector<int>& minors);

// kUnavailable if this kernel does not offer it; then nothing has changed.
Result<void> FilterGpusV2(const std::string& group, const std::vector<int>& minors);
Result<void> FilterGpusV1(const std::string& group, const std::vector<int>& minors);

// "Device Minor" and "GPU UUID" of /proc/driver/nvidia/gpus/*/information; -1 and "" where it names none.
struct NvidiaNode {
  int minor = -1;
  std::string uuid;
};
NvidiaNode ParseNvidiaInformation(std::string_view text);
std::vector<NvidiaNode> NvidiaNodes();

}  // namespace overcap
