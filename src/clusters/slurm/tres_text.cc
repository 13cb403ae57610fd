// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/tres_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "clusters/slurm/sinfo_text.h"

namespace overcap {
namespace {

constexpr int kMostCount = 1'000'000'000;
constexpr std::string_view kUnits = "KMGTPE";
constexpr std::string_view kGpu = "gres/gpu";

int SmallCount(std::string_view text) {
  const auto value = ParseInt(text);
  return value && *value >= 0 && *value <= kMostCount ? static_cast<int>(*value) : 0;
}

void TakeEntry(std::string_view name, std::string_view value, SlurmTres* tres) {
  if (name == "cpu") {
    tres->cpus = SmallCount(value);
  } else if (name == "node") {
    tres->nodes = SmallCount(value);
  } else if (name == "mem") {
    tres->mem_bytes = ParseSlurmMemory(value).value_or(0);
  } else if (name == kGpu) {
    tres->gpus = SmallCount(value);
  } else if (name.substr(0, kGpu.size()) == kGpu && name.size() > kGpu.size() + 1 &&
             name[kGpu.size()] == ':') {
    const int count = SmallCount(value);
    if (count > 0) tres->gpu_types.push_back({std::string(name.substr(kGpu.size() + 1)), count});
  }
}

}  // namespace

SlurmTres ParseTres(std::string_view text) {
  SlurmTres tres;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t equals = entry.find('=');
    if (equals != std::string_view::npos) TakeEntry(entry.substr(0, equals), entry.substr(equals + 1), &tres);
  }
  int64_t typed = 0;
  for (const GpuCount& gpu : tres.gpu_types) typed += gpu.count;
  tres.gpus = static_cast<int>(std::min<int64_t>(std::max<int64_t>(tres.gpus, typed), kMostCount));
  return tres;
}

void AddAskedGpus(std::string_view text, int times, SlurmTres* tres) {
  constexpr std::string_view kStart = "gres";  // then ':' or, later than 23.02, '/'
  for (const std::string& entry : Split(text, ',')) {
    if (entry.rfind(kStart, 0) != 0 || entry.size() <= kStart.size() + 1) continue;
    std::string gres = entry.substr(kStart.size() + 1);
    if (!ParseInt(gres.substr(gres.rfind(':') + 1))) gres += ":1";  // "gpu", "gpu:a40": one
    for (const SlurmNodeGpus& gpus : ParseGpuGres(gres, "")) {
      const int64_t count = std::min<int64_t>(int64_t{gpus.total} * times, kMostCount);
      if (count == 0) continue;
      tres->gpus = static_cast<int>(std::min<int64_t>(tres->gpus + count, kMostCount));
      if (!gpus.type.empty()) tres->gpu_types.push_back({gpus.type, static_cast<int>(count)});
    }
  }
}

std::optional<int64_t> ParseSlurmMemory(std::string_view text) {
  size_t power = 2;  // of 1024: a number alone counts MiB
  if (!text.empty() && kUnits.find(text.back()) != std::string_view::npos) {
    power = kUnits.find(text.back()) + 1;
    text.remove_suffix(1);
  }
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const double bytes = std::ldexp(number, static_cast<int>(10 * power));
  if (bytes > 9e18) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

}  // namespace overcap
