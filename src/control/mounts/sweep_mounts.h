// SPDX-License-Identifier: Apache-2.0
// Clears what keepers that were killed have left on a node (docs/formats/mounts.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/config.h"
#include "sys/variables.h"

namespace overcap {

struct MountsSwept {
  int64_t slots = 0;                 // folders that were cleared
  int64_t saved = 0;                 // copies whose outputs were uploaded
  std::vector<std::string> unsaved;  // copies with outputs that are in no store, and why; one line each
};

// Of which jobs the outputs of copies are put into their stores, with the keys that `variables` lead to.
struct SweepUploads {
  bool all = false;
  std::string job = {};              // else of this one only; "": of none
  std::function<void()> alive = {};  // is called meanwhile
};

// Best effort, and nothing that somebody holds is touched.
MountsSwept SweepMounts(const std::string& node_folder, const Variables& variables,
                        const SweepUploads& uploads);

// The same for the folder that a cluster's nodes use, on this machine. What is wrong is in `unsaved`.
MountsSwept SweepMountsHere(const Config& config, const std::string& cluster);

}  // namespace overcap
