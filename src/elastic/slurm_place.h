// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "elastic/place.h"
#include "sys/variables.h"

namespace overcap::elastic {

constexpr int kSlurmPorts = 8;  // that are tried, one after the other

// What `auto` means for an agent that Slurm has started beside others: the agent on the first node of the
// step is the host (or that on $OVERCAP_RDZV_HEAD, where the step does not have it), the ports follow from
// the id, and a step that was given no id is its own. Anything else stays as it is. Pure.
RendezvousPlace PlaceUnderSlurm(RendezvousPlace place, const Variables& variables);

}  // namespace overcap::elastic
