// SPDX-License-Identifier: Apache-2.0
// How an attempt ended, in words and as an exit status. Pure.
#pragma once

#include <string>
#include <string_view>

#include "launch/runner.h"

namespace overcap {

constexpr int kIdleStatus = 124;

// 0, the exit status of the rank that failed first, 124 for silence, 128 + signal when it was cancelled, else
// that of the error.
int ExitStatusOf(const AttemptEnd& end);

// "rank 3 on 'ml2' failed first: exit status 7", "... killed by signal 9 (SIGKILL), ..."; "" for a good end.
std::string EndLine(const AttemptEnd& end, int64_t idle_us);

// "done", "rank_failed", ...: for result.json.
std::string_view CauseName(AttemptEnd::Cause cause);

}  // namespace overcap
