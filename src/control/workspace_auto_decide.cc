// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_auto_decide.h"

#include <algorithm>

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kFirstPause = 10 * kSecond, kLongestPause = 600 * kSecond;
// Pauses after a failure when time is short.
constexpr int64_t kHurriedPause = 5 * kSecond, kStopPause = 1 * kSecond;
// The second backup before the end begins early enough to be complete if it takes twice as long as the last.
constexpr int64_t kLastCallLeast = 30 * kSecond, kLastCallSpare = 15 * kSecond;

struct Due {
  int64_t at;
  AutoReason reason;
};

Due Earlier(const Due& a, const Due& b) {
  return b.at < a.at ? b : a;
}

bool SavedSince(const AutoFacts& facts, int64_t time) {
  return facts.saved && *facts.saved >= time;
}

bool AskedAndUnsaved(const AutoFacts& facts) {
  return facts.asked && !SavedSince(facts, *facts.asked);
}

// One backup is due `margin_us` before the end, one more as late as is safe.
Due EarlierOfEnd(const AutoRules& rules, const AutoFacts& facts, const Due& due) {
  if (!facts.end || facts.now >= *facts.end) return due;
  const int64_t early = *facts.end - rules.margin_us;
  const int64_t late = *facts.end - std::max(kLastCallLeast, 2 * facts.took + kLastCallSpare);
  const int64_t at = SavedSince(facts, early) ? std::max(early, late) : early;
  return SavedSince(facts, at) ? due : Earlier(due, {at, AutoReason::kEndNear});
}

Due NextDue(const AutoRules& rules, const AutoFacts& facts) {
  Due due{facts.now, AutoReason::kFirst};
  if (facts.saved) due = {*facts.saved + rules.every_us, AutoReason::kTime};
  if (AskedAndUnsaved(facts)) due = Earlier(due, {*facts.asked, AutoReason::kAsked});
  return EarlierOfEnd(rules, facts, due);
}

Due RetryDue(const AutoRules& rules, const AutoFacts& facts) {
  const bool near = facts.end && facts.now < *facts.end && facts.now >= *facts.end - rules.margin_us;
  const int64_t pause = near || AskedAndUnsaved(facts) ? kHurriedPause : AutoPauseUs(facts.failures);
  return {facts.tried.value_or(facts.now) + pause, AutoReason::kRetry};
}

AutoDecision DecideStop(const AutoRules& rules, const AutoFacts& facts) {
  if (SavedSince(facts, *facts.stopped)) return {AutoAct::kEnd, AutoReason::kStop, facts.now, false};
  const bool failed = facts.failures > 0 && facts.tried && *facts.tried >= *facts.stopped;
  if (failed && facts.now >= *facts.stopped + rules.last_us)
    return {AutoAct::kEnd, AutoReason::kStop, facts.now, true};
  if (failed && facts.now < *facts.tried + kStopPause)
    return {AutoAct::kWait, AutoReason::kStop, *facts.tried + kStopPause, false};
  return {AutoAct::kBackUp, AutoReason::kStop, facts.now, false};
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
    case AutoReason::kTime:
      return "time";
  }
  return "";
}

int64_t AutoPauseUs(int failures) {
  if (failures < 1) return 0;
  return std::min(kLongestPause, kFirstPause << std::min(failures - 1, 10));
}

AutoDecision DecideAuto(const AutoRules& rules, const AutoFacts& facts) {
  if (facts.stopped) return DecideStop(rules, facts);
  const Due due = facts.failures > 0 ? RetryDue(rules, facts) : NextDue(rules, facts);
  if (due.at <= facts.now) return {AutoAct::kBackUp, due.reason, facts.now, false};
  return {AutoAct::kWait, due.reason, due.at, false};
}

}  // namespace overcap
