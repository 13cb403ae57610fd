// SPDX-License-Identifier: Apache-2.0
// Ranks that somebody else has started, and all that they have started themselves.
#pragma once

#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "launch/foreign/watched_rank.h"

namespace overcap {

using WatchedRanks = std::vector<std::unique_ptr<WatchedRank>>;

// Processes that ranks have begun, the living ranks apart: by `tag`, the NAME=VALUE that all of them were
// given, and by descent.
std::vector<pid_t> BegunBy(const WatchedRanks& ranks, const std::string& tag);

// The warning (sys/warning.h) to those of the ranks' processes that handle it.
void WarnFamily(const WatchedRanks& ranks, const std::string& tag);

// To the ranks with their groups, and to whatever else they have begun that is in none of these.
void SignalFamily(const WatchedRanks& ranks, const std::string& tag, int sig);

}  // namespace overcap
