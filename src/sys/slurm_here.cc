// SPDX-License-Identifier: Apache-2.0
#include "sys/slurm_here.h"

#include <algorithm>
#include <array>

namespace overcap {
namespace {

// Where builds look for slurm.conf, and where slurmd and sackd keep it on machines without a copy of their
// own.
const std::array<std::string, 5> kFiles = {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf",
                                           "/run/slurm/conf/slurm.conf", "/usr/local/etc/slurm.conf",
                                           "/opt/slurm/etc/slurm.conf"};

}  // namespace

bool SlurmIsSetUp(const Variables& variables, std::string_view program,
                  const std::function<bool(const std::string& path)>& exists) {
  if (!variables.Get("SLURM_CONF").empty()) return true;
  // Distributions bring the programs to machines without a cluster too; other folders are a site's own.
  const std::string_view folder = program.substr(0, program.rfind('/'));
  const bool own = !program.empty() && folder != "/usr/bin" && folder != "/bin";
  return own || std::ranges::any_of(kFiles, exists);
}

}  // namespace overcap
