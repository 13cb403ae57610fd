// SPDX-License-Identifier: Apache-2.0
#include "sys/devices.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sched.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/cgroup_places.h"
#include "sys/nvidia_smi.h"
#include "sys/nvml.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::chrono::milliseconds kNvidiaSmiTimeout{5000};

std::string ReadText(const std::string& path) {
  return std::string(Trim(PosixFiles().Read(path).value_or("")));
}

int64_t TotalMemoryBytes() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

void DetectGpus(MachineFacts* facts) {
  auto gpus = GpusFromNvml();
  facts->how = "nvml";
  if (!gpus) {
    if (gpus.error().code != ErrorCode::kNotFound) facts->problems.push_back(gpus.error().message);
    gpus = GpusFromNvidiaSmi(kNvidiaSmiTimeout);
    facts->how = "nvidia-smi";
  }
  if (!gpus) {
    if (gpus.error().code != ErrorCode::kNotFound) facts->problems.push_back(gpus.error().message);
    facts->how = "none";
    return;
  }
  facts->gpus = std::move(*gpus);
}

}  // namespace

std::vector<int> AffinityCpus(pid_t pid) {
  std::vector<int> ids;
  // Machines with more than 1024 processors need a longer mask than cpu_set_t.
  for (int bits = CPU_SETSIZE; bits <= 1 << 16 && ids.empty(); bits *= 4) {
    cpu_set_t* mask = CPU_ALLOC(bits);
    const size_t size = CPU_ALLOC_SIZE(bits);
    const bool told = sched_getaffinity(pid, size, mask) == 0;
    for (int id = 0; told && id < bits; ++id) {
      if (CPU_ISSET_S(id, size, mask)) ids.push_back(id);
    }
    CPU_FREE(mask);
  }
  return ids;
}

int64_t MemoryLimitBytes() {
  const CgroupPlaces places = OwnCgroupPlaces();
  int64_t lowest = -1;
  const auto take = [&](const std::string& file) {
    const auto limit = ParseInt(ReadText(file));
    if (limit && *limit > 0 && (lowest < 0 || *limit < lowest)) lowest = *limit;
  };
  for (const std::string& folder : places.v2.Upwards()) take(folder + "/memory.max");
  if (const auto place = places.v1.find("memory"); place != places.v1.end()) {
    for (const std::string& folder : place->second.Upwards()) take(folder + "/memory.limit_in_bytes");
  }
  return lowest;
}

double CpuQuota() {
  const CgroupPlaces places = OwnCgroupPlaces();
  double lowest = -1;
  const auto take = [&](const std::string& quota_text, const std::string& period_text) {
    const auto quota = ParseInt(quota_text), period = ParseInt(period_text);
    if (!quota || !period || *quota <= 0 || *period <= 0) return;
    const double cpus = static_cast<double>(*quota) / static_cast<double>(*period);
    if (lowest < 0 || cpus < lowest) lowest = cpus;
  };
  for (const std::string& folder : places.v2.Upwards()) {
    const std::vector<std::string> words = Split(ReadText(folder + "/cpu.max"), ' ');
    if (words.size() == 2) take(words[0], words[1]);
  }
  if (const auto place = places.v1.find("cpu"); place != places.v1.end()) {
    for (const std::string& folder : place->second.Upwards()) {
      take(ReadText(folder + "/cpu.cfs_quota_us"), ReadText(folder + "/cpu.cfs_period_us"));
    }
  }
  return lowest;
}

MachineFacts DetectMachine() {
  MachineFacts facts;
  facts.host = OwnHostName();
  facts.cpu_ids = AffinityCpus();
  facts.cpus = facts.cpu_ids.empty() ? std::max<int>(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)))
                                     : static_cast<int>(facts.cpu_ids.size());
  if (const double quota = CpuQuota(); quota > 0) {
    facts.cpus = std::min(facts.cpus, std::max(1, static_cast<int>(std::ceil(quota))));
  }
  facts.mem_bytes = TotalMemoryBytes();
  if (const int64_t limit = MemoryLimitBytes(); limit > 0) facts.mem_bytes = std::min(facts.mem_bytes, limit);
  DetectGpus(&facts);
  return facts;
}

}  // namespace overcap
