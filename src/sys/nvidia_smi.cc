// SPDX-License-Identifier: Apache-2.0
#include "sys/nvidia_smi.h"

#include <cstdlib>
#include <unistd.h>

#include "base/text.h"
#include "sys/capture_output.h"
#include "sys/process.h"

namespace overcap {
namespace {

constexpr int64_t kMiB = 1 << 20;

tl::unexpected<Error> BadLine(std::string_view line) {
  return Fail(ErrorCode::kCorrupt,
              StrCat("nvidia-smi printed '", ToUtf8(line.substr(0, 200)), "' instead of a GPU"));
}

Result<GpuFacts> ParseLine(std::string_view line) {
  const std::vector<std::string> fields = Split(line, ',');
  if (fields.size() != 4) return BadLine(line);
  const auto index = ParseInt(Trim(fields[0]));
  const std::string_view name = Trim(fields[1]), uuid = Trim(fields[2]), memory = Trim(fields[3]);
  const auto mib = memory.starts_with('[') && memory.ends_with(']') ? 0 : ParseInt(memory);
  const bool good = index && *index >= 0 && *index < 4096 && !name.empty() && uuid.starts_with("GPU-") &&
                    mib && *mib >= 0 && *mib < int64_t{1} << 40;
  if (!good) return BadLine(line);
  return GpuFacts{static_cast<int>(*index), std::string(name), std::string(uuid), *mib * kMiB};
}

std::vector<std::string> CurrentEnvironment() {
  std::vector<std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) env.emplace_back(*entry);
  return env;
}

}  // namespace

Result<std::vector<GpuFacts>> ParseNvidiaSmi(std::string_view output) {
  std::vector<GpuFacts> gpus;
  if (output.empty()) return gpus;
  if (output.back() != '\n') return BadLine(output.substr(output.rfind('\n') + 1));  // cut off
  for (const std::string& line : Split(output.substr(0, output.size() - 1), '\n')) {
    if (Trim(line).empty()) continue;
    if (Trim(line) == "No devices were found") return std::vector<GpuFacts>();
    OC_TRY(gpu, ParseLine(line));
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

Result<std::vector<GpuFacts>> GpusFromNvidiaSmi(std::chrono::milliseconds timeout) {
  const std::vector<std::string> env = CurrentEnvironment();
  const auto program = ResolveProgram("nvidia-smi", PathOf(env), "/");
  if (!program) return Fail(ErrorCode::kNotFound, "nvidia-smi is not installed");
  SpawnRequest request;
  request.argv = {"nvidia-smi", "--query-gpu=index,name,uuid,memory.total", "--format=csv,noheader,nounits"};
  request.program = *program;
  request.env = env;
  request.cwd = "/";
  OC_TRY(captured, CaptureOutput(std::move(request), timeout));
  if (!captured.end.ok()) {
    const std::string_view words = Trim(captured.output);
    return Fail(ErrorCode::kUnavailable, StrCat("nvidia-smi failed with status ", captured.end.exit_status,
                                                ": ", ToUtf8(words.substr(0, words.find('\n')))));
  }
  return ParseNvidiaSmi(captured.output);
}

}  // namespace overcap
