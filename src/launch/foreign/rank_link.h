// SPDX-License-Identifier: Apache-2.0
// How a rank under srun or an mpiexec hands its output to the node process of its host, which it starts when
// there is none yet (docs/formats/node-link.md).
#pragma once

#include <string>

#include "base/result.h"
#include "launch/rank_variables.h"
#include "sys/fd.h"
#include "sys/variables.h"

namespace overcap {

struct RankLink {
  std::string master_addr;
  int master_port = 0;
  Fd out, err;       // what becomes stdout and stderr; not valid: they stay as the launcher made them
  std::string note;  // why there is no link, for stderr of the first rank of a host; else ""
};

// For a process that its launcher started and whose variables hold OVERCAP_LAUNCH; they are taken out of
// `variables`, OVERCAP_LAUNCH_ID comes instead. Waits until the launch knows where rank 0 is, 30 s at most.
// A launch that cannot be reached is no error (`note`); kConflict when it was stopped meanwhile: the rank
// must not run. Forks: the process must have one thread.
Result<RankLink> JoinNode(const RankPlace& place, Variables* variables);

// Makes the link's pipes stdout and stderr of this process. Nothing to do without a link.
Result<void> UseLink(const RankLink& link);

}  // namespace overcap
