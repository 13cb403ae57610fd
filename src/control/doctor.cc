// SPDX-License-Identifier: Apache-2.0
#include "control/doctor.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/fs.h>
#include <optional>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "control/engine_call.h"
#include "control/this_machine.h"
#include "sys/cgroup.h"
#include "sys/devices.h"
#include "sys/fd.h"
#include "sys/process.h"

namespace overcap {
namespace {

Finding OfConfig(const Result<Config>& config) {
  if (!config) return {"configuration", Health::kBroken, config.error().message, config.error().hint};
  if (config->files.empty()) return {"configuration", Health::kFine, "no file, defaults everywhere", ""};
  return {"configuration", Health::kFine, Join(config->files, ", "), ""};
}

Finding OfMachine(const Machine& machine) {
  return {"machine", Health::kFine,
          StrCat(machine.host, ": ", machine.cpus, " CPUs, ", FormatBytes(machine.mem_bytes), " memory"), ""};
}

// "4 x a40 (48.0 GiB), 1 x h200"
std::string GpuText(const std::vector<Gpu>& gpus) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < gpus.size();) {
    size_t same = i;
    while (same < gpus.size() && gpus[same].type == gpus[i].type &&
           gpus[same].memory_bytes == gpus[i].memory_bytes)
      ++same;
    const std::string memory =
        gpus[i].memory_bytes > 0 ? StrCat(" (", FormatBytes(gpus[i].memory_bytes), ")") : "";
    parts.push_back(StrCat(same - i, " x ", gpus[i].type, memory));
    i = same;
  }
  return Join(parts, ", ");
}

Finding OfGpus(const Machine& machine, const MachineFacts& facts, bool declared) {
  const std::string how = declared ? "declared in the configuration" : StrCat("found by ", facts.how);
  if (!facts.problems.empty() && !declared) {
    return {"gpus", Health::kWorse, Join(facts.problems, "; "),
            "check the NVIDIA driver, or declare GPUs under clusters.local.gpus"};
  }
  if (!machine.gpus.empty()) return {"gpus", Health::kFine, StrCat(GpuText(machine.gpus), ", ", how), ""};
  return {"gpus", Health::kFine, "none; jobs run on CPUs",
          "with GPUs that are not found: declare them under clusters.local.gpus"};
}

Finding OfCgroups() {
  const CgroupRequest request = {StrCat("overcap-doctor-", getpid()), int64_t{1} << 30, ""};
  auto group = Cgroup::Create(request);
  if (!group) {
    return {"cgroups", Health::kWorse, StrCat("not usable: ", group.error().message),
            "memory limits are kept by watching the processes instead; on systemd machines run in a user "
            "session with "
            "delegation"};
  }
  const int version = group->Version();
  const auto removed = group->Remove(std::chrono::milliseconds(1000));
  if (!removed) return {"cgroups", Health::kWorse, removed.error().message, ""};
  return {"cgroups", Health::kFine, StrCat("version ", version, ", memory limits are the kernel's business"),
          ""};
}

Finding OfEngine(const std::string& root) {
  const auto status = GetEngineStatus(EngineSocket(root, false));
  if (status) {
    const bool other = status->version != OVERCAP_VERSION;
    return {
        "engine", other ? Health::kWorse : Health::kFine,
        StrCat("running, pid ", status->pid, ", version ", status->version, ", up ",
               FormatDuration(status->uptime_seconds)),
        other ? "it is of another version: 'overcap daemon stop', the next command starts the new one" : ""};
  }
  if (status.error().code == ErrorCode::kNotFound)
    return {"engine", Health::kFine, "not running; started at the first need", ""};
  return {"engine", Health::kBroken, status.error().message, status.error().hint};
}

// The nearest folder at or above `path` that exists.
std::string ExistingFolder(std::string path) {
  while (path.size() > 1 && access(path.c_str(), F_OK) != 0)
    path.resize(std::max<size_t>(1, path.find_last_of('/')));
  return path;
}

Finding OfStateFolder(const std::string& root) {
  const std::string folder = ExistingFolder(root);
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return {"state folder", Health::kBroken, StrCat("cannot write to '", folder, "': ", std::strerror(errno)),
            "set OVERCAP_HOME to a folder of yours"};
  }
  struct statvfs space {};
  if (statvfs(folder.c_str(), &space) != 0)
    return {"state folder", Health::kWorse, StrCat("'", folder, "': ", std::strerror(errno)), ""};
  const int64_t free_bytes = static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
  const bool little = free_bytes < (int64_t{1} << 30);
  return {"state folder", little ? Health::kWorse : Health::kFine,
          StrCat(root, ", ", FormatBytes(free_bytes), " free"),
          little ? "free some space, 'overcap gc' removes old jobs" : ""};
}

// Two files without names, so that nothing is left whatever happens; nullopt when they cannot be made there.
std::optional<bool> CanClone(const std::string& folder) {
  const Fd from(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const Fd to(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!from || !to || write(from.Get(), "x", 1) != 1) return std::nullopt;
  return ioctl(to.Get(), FICLONE, from.Get()) == 0;
}

Finding OfCopies(const std::string& root) {
  const auto clones = CanClone(ExistingFolder(root));
  if (!clones)
    return {"code copies", Health::kFine, "whether this file system shares copies is not known", ""};
  if (*clones)
    return {"code copies", Health::kFine, "shared by reflink: each attempt's copy costs nothing", ""};
  return {"code copies", Health::kFine, "without reflinks: each attempt's copy takes real space",
          "btrfs or xfs under OVERCAP_HOME makes them free"};
}

struct Tool {
  std::string_view name;
  std::string_view use;
  bool (*wanted)();
};
constexpr std::array<Tool, 1> kTools = {{
    {"nvidia-smi", "shows what the GPUs are doing", [] { return access("/dev/nvidiactl", F_OK) == 0; }},
}};

Finding OfTools(const std::string& path) {
  std::vector<std::string> missing;
  for (const Tool& tool : kTools) {
    if (tool.wanted() && !ResolveProgram(tool.name, path, "/"))
      missing.push_back(StrCat(tool.name, " (", tool.use, ")"));
  }
  if (missing.empty()) return {"tools", Health::kFine, "nothing is missing", ""};
  return {"tools", Health::kWorse, StrCat("missing: ", Join(missing, ", ")),
          "install them, or put them on the PATH"};
}

}  // namespace

std::string_view HealthName(Health health) {
  return health == Health::kFine ? "ok" : health == Health::kWorse ? "warning" : "error";
}

std::vector<Finding> Examine(const DoctorSubject& subject) {
  const MachineFacts facts = DetectMachine();
  ClusterConfig declared;
  if (subject.config) declared = subject.config->clusters.at("local");
  const Machine machine = MachineOf(declared, facts);
  return {OfConfig(subject.config),
          OfMachine(machine),
          OfGpus(machine, facts, declared.gpus.has_value()),
          OfCgroups(),
          OfStateFolder(subject.root),
          OfCopies(subject.root),
          OfEngine(subject.root),
          OfTools(subject.path)};
}

}  // namespace overcap
