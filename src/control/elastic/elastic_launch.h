// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/elastic/elastic_options.h"
#include "control/launch.h"
#include "elastic/slurm_place.h"

namespace overcap {

// `overcap launch` of an elastic job: this node's agent, from joining to the end. The exit status; an error
// means that nothing was started, or that the group could not be joined.
Result<int> RunElasticLaunch(ElasticOptions options, const LaunchWorld& world, LaunchVoice* voice);

// That programs of this user see on this machine; `intel`: those of that maker only.
int GpusHere(const Variables& variables, bool intel = false);

}  // namespace overcap
