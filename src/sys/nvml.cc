// SPDX-License-Identifier: Apache-2.0
#include "sys/nvml.h"

#include <dlfcn.h>
#include <memory>
#include <string_view>

#include "base/text.h"

namespace overcap {
namespace {

// The part of NVML's C interface that is used here; stable since NVML 5.
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr int kNvmlSuccess = 0;

struct Nvml {
  int (*init)();
  int (*shutdown)();
  const char* (*error_string)(int);
  int (*count)(unsigned*);
  int (*handle)(unsigned, NvmlDevice*);
  int (*name)(NvmlDevice, char*, unsigned);
  int (*uuid)(NvmlDevice, char*, unsigned);
  int (*memory)(NvmlDevice, NvmlMemory*);
};

template <typename Function>
bool Load(void* library, const char* symbol, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, symbol));
  return *function != nullptr;
}

bool LoadAll(void* library, Nvml* nvml) {
  return Load(library, "nvmlInit_v2", &nvml->init) && Load(library, "nvmlShutdown", &nvml->shutdown) &&
         Load(library, "nvmlErrorString", &nvml->error_string) &&
         Load(library, "nvmlDeviceGetCount_v2", &nvml->count) &&
         Load(library, "nvmlDeviceGetHandleByIndex_v2", &nvml->handle) &&
         Load(library, "nvmlDeviceGetName", &nvml->name) && Load(library, "nvmlDeviceGetUUID", &nvml->uuid) &&
         Load(library, "nvmlDeviceGetMemoryInfo", &nvml->memory);
}

tl::unexpected<Error> Failed(const Nvml& nvml, std::string_view what, int status) {
  const char* words = nvml.error_string(status);
  return Fail(ErrorCode::kUnavailable, StrCat("nvml cannot ", what, ": ",
                                              std::string_view(words == nullptr ? "unknown error" : words)));
}

Result<GpuFacts> ReadGpu(const Nvml& nvml, unsigned index) {
  NvmlDevice device = nullptr;
  char name[96] = "", uuid[96] = "";
  NvmlMemory memory{};
  const std::string what = StrCat("read GPU ", index);
  if (const int status = nvml.handle(index, &device); status != kNvmlSuccess)
    return Failed(nvml, what, status);
  if (const int status = nvml.name(device, name, sizeof name); status != kNvmlSuccess) {
    return Failed(nvml, what, status);
  }
  if (const int status = nvml.uuid(device, uuid, sizeof uuid); status != kNvmlSuccess) {
    return Failed(nvml, what, status);
  }
  // GPUs that share the host's memory have none of their own to tell of.
  if (nvml.memory(device, &memory) != kNvmlSuccess) memory.total = 0;
  return GpuFacts{static_cast<int>(index), name, uuid, static_cast<int64_t>(memory.total)};
}

// All or none: a list without the GPU that fell off the bus would send jobs to the wrong ones.
Result<std::vector<GpuFacts>> ReadAll(const Nvml& nvml) {
  unsigned count = 0;
  if (const int status = nvml.count(&count); status != kNvmlSuccess)
    return Failed(nvml, "count GPUs", status);
  std::vector<GpuFacts> gpus;
  for (unsigned i = 0; i < count; ++i) {
    OC_TRY(gpu, ReadGpu(nvml, i));
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace

Result<std::vector<GpuFacts>> GpusFromNvml(const char* library) {
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return Fail(ErrorCode::kNotFound, StrCat("no library '", std::string_view(library), "'"));
  const std::unique_ptr<void, int (*)(void*)> closer(opened, dlclose);
  Nvml nvml{};
  if (!LoadAll(opened, &nvml)) {
    return Fail(ErrorCode::kUnavailable, StrCat("'", std::string_view(library), "' lacks functions of NVML"));
  }
  if (const int status = nvml.init(); status != kNvmlSuccess) return Failed(nvml, "start", status);
  auto gpus = ReadAll(nvml);
  nvml.shutdown();
  return gpus;
}

}  // namespace overcap
