// SPDX-License-Identifier: Apache-2.0
// What Slurm's words for the state of a node mean: "mixed", "idle+drain", "down*", "drng@", "idle~".
#pragma once

#include <string_view>

namespace overcap {

struct NodeStateMeaning {
  bool known = false;       // a word that we do not know: all below is false
  bool takes_jobs = false;  // new jobs may start there now or as soon as what runs there ends
  bool down = false;        // nothing can run there
  bool draining = false;    // an administrator takes it out: what runs may end, nothing new starts
  bool responding = true;   // its daemon answers
  bool asleep = false;      // powered off to save energy: Slurm wakes it for a job
  bool reserved = false;    // only for jobs of a reservation or a maintenance
};

// Long and short words, with the flags of `StateComplete` ("idle+drain+not_responding") or the one-character
// ones of the other columns ("idle*").
NodeStateMeaning ReadNodeState(std::string_view raw);

}  // namespace overcap
