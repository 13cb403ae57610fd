// SPDX-License-Identifier: Apache-2.0
// Signs of life of the ranks: what they tell, and that they are silent.
#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "control/elastic/elastic_agent.h"
#include "launch/local/idle_watch.h"

namespace overcap {

bool ElasticAgent::TakeWord(const RankSocket::Word& word) {
  if (!member_.Running() || word.epoch != plan_.epoch) return false;
  const int local = word.rank - plan_.first_rank;
  if (local < 0 || local >= static_cast<int>(signs_.size())) return false;
  RankSigns& sign = signs_[local];
  sign.alive_us = NowUs();
  sign.beats = sign.beats || !word.checkpoint;
  sign.step = std::max(sign.step, word.step);
  member_.OnStep(word.step);
  const RankSigns* slowest = nullptr;
  for (const RankSigns& each : signs_) {
    if (each.step >= 0 && (slowest == nullptr || each.step < slowest->step)) slowest = &each;
  }
  if (slowest != nullptr) {
    member_.OnSlowest(plan_.first_rank + static_cast<int>(slowest - signs_.data()), slowest->step);
  }
  if (!word.checkpoint) return false;
  events_.Add("checkpoint",
              [&](JsonWriter* json) { json->Field("epoch", plan_.epoch).Field("step", word.step); });
  return member_.OnCheckpoint(word.step, NowUs());
}

// A rank that has ever said that it lives is judged by that; the others by what any of them writes.
void ElasticAgent::CheckHang() {
  const int64_t limit = parts_.options.hang_us;
  if (limit == 0 || !member_.Running() || !started_ || stopping_) return;
  const int64_t now_us = NowUs();
  int late = -1;
  bool any_beats = false;
  for (size_t i = 0; i < signs_.size(); ++i) {
    if (!signs_[i].beats || pids_[i] == 0) continue;
    any_beats = true;
    const bool slower = late < 0 || signs_[i].step < signs_[late].step;
    if (now_us - signs_[i].alive_us >= limit && slower) late = static_cast<int>(i);
  }
  if (late < 0 && (any_beats || now_us - output_us_ < limit)) return;
  if (late < 0 && logs_ && logs_->LookAtAll(parts_.world.clock.WallUs())) {
    output_us_ = now_us;
    return;
  }
  stopping_ = true;
  elastic::ElasticFailure failure;
  failure.rank = plan_.first_rank + std::max(late, 0);
  failure.exit_status = 124;
  failure.kind = "hung";
  failure.message = late < 0
                        ? StrCat("no rank wrote anything for ", FormatElapsed(limit))
                        : StrCat("no heartbeat for ", FormatElapsed(limit), ", at step ", signs_[late].step);
  events_.Add("hung",
              [&](JsonWriter* json) { json->Field("epoch", plan_.epoch).Field("rank", failure.rank); });
  member_.OnRankFailed(std::move(failure), now_us);
}

void ElasticAgent::KeepStacksNow() {
  std::vector<std::pair<int, std::string>> stacks = StacksOfRanks(pids_, NowUs());
  for (auto& [rank, text] : stacks) rank += plan_.first_rank;
  if (const auto kept = KeepStacks(log_folder_, stacks); !kept) parts_.voice.Warn(kept.error().message);
}

}  // namespace overcap
