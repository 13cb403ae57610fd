// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_auto_decide.h"

#include <algorithm>
#include <limits>

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kFirstPause = 10 * kSecond, kLongestPause = 600 * kSecond;
// Where time is short a failure is tried again soon.
constexpr int64_t kHurriedPause = 5 * kSecond, kStopPause = 1 * kSecond;
// The second backup before the end begins so early that it is done in time, if it takes no longer than twice
// the last one.
constexpr int64_t kLastCallLeast = 30 * kSecond, kLastCallSpare = 15 * kSecond;
// A backup may not take more than a tenth of the time when changes never end.
constexpr int64_t kRestFactor = 10;

struct Due {
  int64_t at = std::numeric_limits<int64_t>::max();
  AutoReason reason = AutoReason::kNone;
  bool full = true;

  void Or(const Due& other) {
    if (other.at < at) *this = other;
  }
};

bool SavedSince(const AutoFacts& facts, int64_t time) {
  return facts.saved && *facts.saved >= time;
}

// The two times before the end at which a backup is due: the first one in good time, the other as late as is
// safe.
Due EndDue(const AutoRules& rules, const AutoFacts& facts) {
  Due due;
  if (!facts.end || facts.now >= *facts.end) return due;
  const int64_t early = *facts.end - rules.margin_us;
  const int64_t late = *facts.end - std::max(kLastCallLeast, 2 * facts.took + kLastCallSpare);
  for (const int64_t at : {early, std::max(early, late)}) {
    if (!SavedSince(facts, at)) due.Or({at, AutoReason::kEndNear});
  }
  return due;
}

Due ChangeDue(const AutoRules& rules, const AutoFacts& facts) {
  Due due;
  if (facts.first_change && facts.last_change) {
    const int64_t at = std::min(*facts.last_change + rules.quiet_us, *facts.first_change + rules.most_us);
    const int64_t rested = facts.tried ? *facts.tried + kRestFactor * facts.took : at;
    due = {std::max(at, rested), AutoReason::kChanged, !facts.watched};
  }
  const int64_t check = facts.watched ? rules.check_us : rules.blind_us;
  due.Or({facts.checked.value_or(facts.now) + check, AutoReason::kCheck});
  return due;
}

Due UsualDue(const AutoRules& rules, const AutoFacts& facts) {
  if (!facts.saved) return {facts.now, AutoReason::kFirst};
  if (rules.on_change) return ChangeDue(rules, facts);
  return {*facts.saved + rules.every_us, AutoReason::kTime};
}

// Soon means: with the end near or a warning heard.
Due RetryDue(const AutoRules& rules, const AutoFacts& facts) {
  const bool near = facts.end && facts.now < *facts.end && facts.now >= *facts.end - rules.margin_us;
  const bool asked = facts.asked && !SavedSince(facts, *facts.asked);
  const int64_t pause = near || asked ? kHurriedPause : AutoPauseUs(facts.failures);
  return {facts.tried.value_or(facts.now) + pause, AutoReason::kRetry};
}

AutoDecision DecideStop(const AutoRules& rules, const AutoFacts& facts) {
  AutoDecision decision{AutoAct::kEnd, AutoReason::kStop, true, facts.now, false};
  if (SavedSince(facts, *facts.stopped)) return decision;
  const bool failed = facts.failures > 0 && facts.tried && *facts.tried >= *facts.stopped;
  if (failed && facts.now >= *facts.stopped + rules.last_us) {
    decision.unsaved = true;
    return decision;
  }
  decision.act = AutoAct::kBackUp;
  if (failed && facts.now < *facts.tried + kStopPause) {
    decision.act = AutoAct::kWait;
    decision.at = *facts.tried + kStopPause;
  }
  return decision;
}

}  // namespace

std::string_view AutoReasonText(AutoReason reason) {
  switch (reason) {
    case AutoReason::kStop:
      return "told to end";
    case AutoReason::kAsked:
      return "warned";
    case AutoReason::kEndNear:
      return "the allocation ends soon";
    case AutoReason::kFirst:
      return "start";
    case AutoReason::kRetry:
      return "try again";
    case AutoReason::kChanged:
      return "changes";
    case AutoReason::kTime:
      return "time";
    case AutoReason::kCheck:
      return "full check";
    case AutoReason::kNone:
      break;
  }
  return "";
}

int64_t AutoPauseUs(int failures) {
  if (failures < 1) return 0;
  return std::min(kLongestPause, kFirstPause << std::min(failures - 1, 10));
}

AutoDecision DecideAuto(const AutoRules& rules, const AutoFacts& facts) {
  if (facts.stopped) return DecideStop(rules, facts);
  Due due = UsualDue(rules, facts);
  if (facts.asked && !SavedSince(facts, *facts.asked)) due.Or({*facts.asked, AutoReason::kAsked});
  due.Or(EndDue(rules, facts));
  // What failed is still due, but waits a while; what was to be looked at is not known any more.
  if (facts.failures > 0) due = RetryDue(rules, facts);
  if (due.at <= facts.now) return {AutoAct::kBackUp, due.reason, due.full, facts.now, false};
  return {AutoAct::kWait, due.reason, due.full, due.at, false};
}

}  // namespace overcap
