// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/fanout_hosts.h"

#include <sys/stat.h>

#include "base/text.h"
#include "control/detect_here.h"
#include "launch/detect/host_file.h"
#include "launch/ssh/ssh_runner.h"

namespace overcap {
namespace {

Result<std::vector<AllocatedHost>> TypedHosts(const std::string& typed) {
  struct stat info {};
  const bool is_file = stat(typed.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
  if (is_file || typed.find('/') != std::string::npos) return ReadHostFile(typed);
  return ParseHostFile(typed, "--hosts");
}

}  // namespace

Result<FanoutHosts> FindFanoutHosts(const LaunchWorld& world, const std::string& typed) {
  FanoutHosts found;
  OC_TRY(here, DetectHere(world, ""));
  std::vector<AllocatedHost> hosts;
  if (!typed.empty()) {
    OC_TRY(given, TypedHosts(typed));
    hosts = std::move(given);
    found.reason = "--hosts";
  } else if (here.allocation.in_job) {
    hosts = here.allocation.hosts;
    found.reason = here.allocation.reasons.hosts;
    found.warnings = here.allocation.warnings;
  } else {
    return Fail(ErrorCode::kUsage, "you are in no job, so it is not known which hosts you mean",
                "add --hosts FILE, or --hosts node1,node2");
  }
  for (const AllocatedHost& host : hosts) found.names.push_back(host.name);
  found.ssh_options = here.site && here.site->ssh_options ? *here.site->ssh_options : DefaultSshOptions();
  found.ssh_program =
      world.variables.Has("OVERCAP_SSH") ? std::string(world.variables.Get("OVERCAP_SSH")) : "ssh";
  return found;
}

}  // namespace overcap
