// SPDX-License-Identifier: Apache-2.0
// How the first node of an elastic job that goes through a store knows that the others have uploaded what
// their ranks wrote: each says so in a line, which srun brings. Pure.
#pragma once

#include <string>
#include <string_view>

namespace overcap {

std::string SentLine(int node);

// How many nodes have said so in what srun wrote.
int CountSent(std::string_view launcher_log);

// Of the last group in an agent's events.jsonl; 0: there was none.
int LastGroupSize(std::string_view events);

}  // namespace overcap
