// SPDX-License-Identifier: Apache-2.0
#include "control/this_machine.h"

#include <optional>

#include "base/json_scan.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "model/gpu_type.h"
#include "model/machine_json.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

std::string CacheFile(const std::string& root) {
  return root + "/machine.json";
}

std::optional<Machine> ReadCache(const std::string& root) {
  const auto text = PosixFiles().Read(CacheFile(root));
  if (!text || JsonString(JsonMember(*text, "boot_id")) != BootId()) return std::nullopt;
  auto machine = MachineFromJson(JsonMember(*text, "machine"));
  return machine ? std::optional(std::move(*machine)) : std::nullopt;
}

// Nothing depends on it: a disk that is full only costs time.
void WriteCache(const std::string& root, const Machine& machine) {
  JsonWriter out;
  out.BeginObject().Field("boot_id", BootId()).Key("machine").Raw(MachineToJson(machine)).EndObject();
  (void)PosixFiles().WriteAtomic(CacheFile(root), out.Text(), false);
}

std::vector<Gpu> DeclaredGpus(const std::vector<GpuDeclaration>& declarations) {
  std::vector<Gpu> gpus;
  for (const GpuDeclaration& declaration : declarations) {
    for (int i = 0; i < declaration.count; ++i) {
      gpus.push_back({.index = static_cast<int>(gpus.size()),
                      .type = NormalGpuType(declaration.type),
                      .uuid = {},
                      .memory_bytes = declaration.memory_bytes});
    }
  }
  return gpus;
}

// The usual names are not worth a list.
bool CountFromZero(const std::vector<int>& ids) {
  return ids.empty() || (ids.front() == 0 && ids.back() == static_cast<int>(ids.size()) - 1);
}

// CPUs that are declared but were not detected have no names, so then none has: they are 0, 1, 2...
Machine Declare(const ClusterConfig& declared, Machine machine) {
  if (declared.gpus) machine.gpus = DeclaredGpus(*declared.gpus);
  if (declared.cpus > 0) machine.cpus = declared.cpus;
  if (declared.mem_bytes > 0) machine.mem_bytes = declared.mem_bytes;
  if (machine.cpu_ids.size() < static_cast<size_t>(machine.cpus)) machine.cpu_ids.clear();
  machine.declared = declared.gpus || declared.cpus > 0 || declared.mem_bytes > 0;
  return machine;
}

}  // namespace

Machine MachineOf(const ClusterConfig& declared, const MachineFacts& facts) {
  Machine machine{
      .host = facts.host, .cpus = facts.cpus, .mem_bytes = facts.mem_bytes, .gpus = {}, .declared = false};
  if (!CountFromZero(facts.cpu_ids)) machine.cpu_ids = facts.cpu_ids;
  for (const GpuFacts& gpu : facts.gpus) {
    machine.gpus.push_back({gpu.index, NormalGpuType(gpu.name), gpu.uuid, gpu.memory_bytes});
  }
  return Declare(declared, std::move(machine));
}

Machine ThisMachine(const ClusterConfig& declared, const std::string& root, bool fresh) {
  if (!fresh) {
    if (auto cached = ReadCache(root)) return Declare(declared, std::move(*cached));
  }
  Machine machine = MachineOf({}, DetectMachine());
  WriteCache(root, machine);
  return Declare(declared, std::move(machine));
}

}  // namespace overcap
