// SPDX-License-Identifier: Apache-2.0
#include "sys/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <signal.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/pipe.h"

namespace overcap {
namespace {

// The part of NVML's C interface that is used here; stable since NVML 5.
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr int kNvmlSuccess = 0;
constexpr int kReapSteps = 1000;  // a process that even KILL cannot end is left to the kernel
constexpr int kReapStepUs = 1000;

struct Nvml {
  int (*init)();
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
  return Load(library, "nvmlInit_v2", &nvml->init) && Load(library, "nvmlErrorString", &nvml->error_string) &&
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

std::string Told(const Result<std::vector<GpuFacts>>& gpus) {
  if (!gpus) return StrCat("error\t", gpus.error().message, "\n");
  std::string text;
  for (const GpuFacts& gpu : *gpus) {
    text += StrCat(gpu.index, "\t", gpu.memory_bytes, "\t", gpu.uuid, "\t", gpu.name, "\n");
  }
  return text + "end\n";
}

Result<std::vector<GpuFacts>> Heard(std::string_view text) {
  std::vector<GpuFacts> gpus;
  for (const std::string& line : Split(text, '\n')) {
    const std::vector<std::string> words = Split(line, '\t');
    if (line == "end") return gpus;
    if (words.size() == 2 && words[0] == "error") return Fail(ErrorCode::kUnavailable, words[1]);
    if (words.size() != 4) break;
    gpus.push_back({static_cast<int>(ParseInt(words[0]).value_or(0)), words[3], words[2],
                    ParseInt(words[1]).value_or(0)});
  }
  return Fail(ErrorCode::kUnavailable, "nvml ended without an answer");
}

std::string ReadUntil(const Fd& fd, int64_t deadline_us) {
  std::string text;
  char buffer[4096];
  for (const PosixClock clock;;) {
    pollfd one{fd.Get(), POLLIN, 0};
    const int64_t left_us = deadline_us - clock.MonotonicUs();
    if (left_us <= 0 || poll(&one, 1, static_cast<int>(left_us / 1000) + 1) == 0) return text;
    const ssize_t size = read(fd.Get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer, size);
  }
}

// In a process of its own: NVML leaves threads behind that take signals which are meant for us (SIGCHLD among
// them), descriptors that our children would have, and hangs when its driver does.
Result<std::vector<GpuFacts>> AskInChild(const Nvml& nvml, int64_t deadline_us) {
  OC_TRY(ends, MakePipe());
  const pid_t child = fork();
  if (child < 0) return Fail(ErrnoError(errno, "cannot start a process"));
  if (child == 0) {
    const int status = nvml.init();
    const std::string text = status == kNvmlSuccess
                                 ? Told(ReadAll(nvml))
                                 : Told(Result<std::vector<GpuFacts>>(Failed(nvml, "start", status)));
    (void)!write(ends.write.Get(), text.data(), text.size());
    _exit(0);
  }
  ends.write.Reset();
  const std::string text = ReadUntil(ends.read, PosixClock().MonotonicUs() + deadline_us);
  kill(child, SIGKILL);
  for (int i = 0; i < kReapSteps && waitpid(child, nullptr, WNOHANG) == 0; ++i) usleep(kReapStepUs);
  return Heard(text);
}

}  // namespace

Result<std::vector<GpuFacts>> GpusFromNvml(const char* library, int64_t deadline_us) {
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return Fail(ErrorCode::kNotFound, StrCat("no library '", std::string_view(library), "'"));
  const std::unique_ptr<void, int (*)(void*)> closer(opened, dlclose);
  Nvml nvml{};
  if (!LoadAll(opened, &nvml)) {
    return Fail(ErrorCode::kUnavailable, StrCat("'", std::string_view(library), "' lacks functions of NVML"));
  }
  return AskInChild(nvml, deadline_us);
}

}  // namespace overcap
