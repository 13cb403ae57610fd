// SPDX-License-Identifier: Apache-2.0
// What is on the terminal, in torchrun's words: --redirects, --tee, --local-ranks-filter.
#pragma once

#include <string_view>
#include <vector>

#include "cli/command.h"
#include "control/launch.h"

namespace overcap::cli {

// Whether --tee was given as only torchrun has it: 1, 2, or streams by local rank. 3 is `all`.
bool IsTorchrunTee(std::string_view text);

// Of the ranks of this node, as torchrun shows them: all that is not redirected, lines of --tee marked. Empty
// when no flag asks for it: then --tee says it in Overcap's words.
Result<std::vector<RankView>> ReadViews(const Args& args, int ranks);

}  // namespace overcap::cli
