// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/group_end.h"

#include <algorithm>
#include <csignal>

#include "base/result.h"
#include "base/text.h"

namespace overcap {
namespace {

constexpr std::string_view kRankFailed = "rank ";

Ending OfWord(const GroupEvent& word) {
  const bool too_few =
      word.status == ExitStatus(ErrorCode::kUnavailable) && !word.message.starts_with(kRankFailed);
  return {too_few ? JobState::kLost : JobState::kFailed, word.status, 0, -1, word.message};
}

}  // namespace

Ending EndingOf(const NodeEnds& ends) {
  const auto well = [](const auto& end) { return end && end->ok(); };
  const bool told_well = ends.word && ends.word->status == 0;
  if (told_well || std::any_of(ends.agents.begin(), ends.agents.end(), well))
    return {JobState::kSucceeded, 0, 0, -1, ""};
  if (ends.told_to_stop) return {JobState::kCancelled, 128 + SIGTERM, SIGTERM, -1, ""};
  if (ends.word) return OfWord(*ends.word);
  for (size_t node = 0; node < ends.agents.size(); ++node) {
    const auto& end = ends.agents[node];
    if (!end) continue;
    const std::string how =
        end->signal != 0 ? StrCat("was killed by signal ", end->signal) : "ended without a word";
    return {JobState::kFailed, end->exit_status, end->signal, -1,
            StrCat("the agent of node ", node, " ", how)};
  }
  return {JobState::kLost, -1, 0, -1, "nobody knows how its agents ended"};
}

}  // namespace overcap
