// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/master_place.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "model/host_list.h"

namespace overcap {
namespace {

constexpr int kFirstPort = 20000, kPorts = 12768;  // below the ports that the kernel gives out by itself

int ParsePort(std::string_view text) {
  const auto port = ParseInt(text);
  return port && *port > 0 && *port < 65536 ? static_cast<int>(*port) : 0;
}

// FNV-1a: the same on every host.
int PortOf(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return kFirstPort + static_cast<int>((hash ^ (hash >> 32)) % kPorts);
}

// What all ranks of this launch share and those of another one do not.
std::string LaunchName(const Variables& variables, int launcher_id) {
  std::string name;
  for (const char* variable : {"SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID", "PALS_APID", "PMIX_NAMESPACE"})
    name += StrCat(variables.Get(variable), "/");
  const bool told = std::ranges::any_of(name, [](char c) { return c != '/'; });
  return told ? name : StrCat(launcher_id);
}

std::string FirstHost(const Variables& variables, const RankPlace& place, const std::string& first_host) {
  if (place.local_world_size == place.world_size) return "127.0.0.1";
  if (place.from == "SLURM_*") {
    const auto hosts = ExpandHostList(variables.Get("SLURM_STEP_NODELIST"));
    if (hosts && !hosts->empty()) return hosts->front();
  }
  return first_host;
}

}  // namespace

MasterPlace MasterPlaceFrom(const Variables& variables, const RankPlace& place, const std::string& first_host,
                            int launcher_id) {
  MasterPlace master;
  for (const char* name : {"OVERCAP_MASTER_ADDR", "MASTER_ADDR"}) {
    if (master.addr.empty()) master.addr = variables.Get(name);
  }
  for (const char* name : {"OVERCAP_MASTER_PORT", "MASTER_PORT"}) {
    if (master.port == 0) master.port = ParsePort(variables.Get(name));
  }
  if (master.addr.empty()) master.addr = FirstHost(variables, place, first_host);
  if (master.port == 0) master.port = PortOf(LaunchName(variables, launcher_id));
  return master;
}

}  // namespace overcap
