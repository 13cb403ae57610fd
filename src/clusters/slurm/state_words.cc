// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/state_words.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/pending_reason.h"

namespace overcap {
namespace {

struct StateRow {
  std::string_view word, code;
  JobState state;
  bool ended;
  std::string_view reason;
};

constexpr StateRow kStates[] = {
    {"PENDING", "PD", JobState::kQueued, false, ""},
    {"CONFIGURING", "CF", JobState::kQueued, false, "its nodes are being made ready"},
    {"REQUEUED", "RQ", JobState::kQueued, false, "put back into the queue"},
    {"REQUEUE_FED", "RF", JobState::kQueued, false, "put back into the queue of the federation"},
    {"REQUEUE_HOLD", "RH", JobState::kHeld, false, "put back into the queue and held"},
    {"SPECIAL_EXIT", "SE", JobState::kHeld, false,
     "put back into the queue and held: it ended with a special exit status"},
    {"RESV_DEL_HOLD", "RD", JobState::kHeld, false, "held: its reservation was deleted"},
    {"RUNNING", "R", JobState::kRunning, false, ""},
    {"COMPLETING", "CG", JobState::kRunning, false, "ending: its nodes are being cleaned up"},
    {"SUSPENDED", "S", JobState::kRunning, false, "suspended"},
    {"STOPPED", "ST", JobState::kRunning, false, "stopped by a signal, keeps its nodes"},
    {"RESIZING", "RS", JobState::kRunning, false, "changing its size"},
    {"SIGNALING", "SI", JobState::kRunning, false, "being sent a signal"},
    {"STAGE_OUT", "SO", JobState::kRunning, false, "ending: its files are being staged out"},
    {"COMPLETED", "CD", JobState::kSucceeded, true, ""},
    {"FAILED", "F", JobState::kFailed, true, ""},
    {"TIMEOUT", "TO", JobState::kFailed, true, "time limit reached"},
    {"DEADLINE", "DL", JobState::kFailed, true, "its deadline has passed"},
    {"OUT_OF_MEMORY", "OOM", JobState::kFailed, true, "out of memory"},
    {"LAUNCH_FAILED", "LF", JobState::kFailed, true, "its processes could not be started"},
    {"RECONFIG_FAIL", "RC", JobState::kFailed, true, "its nodes could not be configured"},
    {"CANCELLED", "CA", JobState::kCancelled, true, ""},
    {"REVOKED", "RV", JobState::kCancelled, true, "another cluster of the federation runs it"},
    {"PREEMPTED", "PR", JobState::kPreempted, true, "preempted by a job that goes first"},
    {"NODE_FAIL", "NF", JobState::kLost, true, "one of its nodes failed"},
    {"BOOT_FAIL", "BF", JobState::kLost, true, "its nodes did not start"},
};

const StateRow* FindRow(std::string_view word) {
  const auto same = [&](const StateRow& row) { return row.word == word || row.code == word; };
  if (const auto* found = std::find_if(std::begin(kStates), std::end(kStates), same);
      found != std::end(kStates)) {
    return found;
  }
  if (word.size() < 4 || word.back() != '+') return nullptr;
  word.remove_suffix(1);
  const auto begins = [&](const StateRow& row) { return row.word.substr(0, word.size()) == word; };
  const auto* found = std::find_if(std::begin(kStates), std::end(kStates), begins);
  const bool only_one = found != std::end(kStates) && std::none_of(found + 1, std::end(kStates), begins);
  return only_one ? found : nullptr;
}

int Bounded(std::string_view digits, int most) {
  const auto value = ParseInt(digits);
  return value && *value >= 0 && *value <= most ? static_cast<int>(*value) : 0;
}

}  // namespace

SlurmState ReadSlurmState(std::string_view raw) {
  raw = Trim(raw);
  const size_t blank = raw.find(' ');
  // "FAILED,COMPLETING": a flag says more than the state below it, where it means anything to us.
  const std::string_view words = raw.substr(0, blank);
  const size_t comma = words.rfind(',');
  const StateRow* row = comma == std::string_view::npos ? nullptr : FindRow(words.substr(comma + 1));
  if (row == nullptr) row = FindRow(words.substr(0, words.find(',')));
  if (row == nullptr) return {JobState::kUnknown, std::string(raw), false, ""};
  SlurmState result{row->state, std::string(row->word), row->ended, std::string(row->reason)};
  if (blank != std::string_view::npos && result.state == JobState::kCancelled && result.reason.empty()) {
    const std::string_view by = raw.substr(blank + 1);
    if (by.substr(0, 3) == "by ") result.reason = StrCat("cancelled by user id ", ToUtf8(by.substr(3)));
  }
  return result;
}

SlurmState ReadSlurmState(std::string_view raw, std::string_view raw_reason) {
  SlurmState result = ReadSlurmState(raw);
  if (result.word != "PENDING") return result;
  const PendingReason why = ReadPendingReason(raw_reason);
  if (why.kind == ReasonKind::kHeld) result.state = JobState::kHeld;
  result.reason = why.text;
  return result;
}

SlurmExit ReadSlurmExit(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    return {Bounded(text.substr(0, colon), 255), Bounded(text.substr(colon + 1), 127)};
  }
  const int both = Bounded(text, 0xFFFF);
  return {both >> 8, both & 0x7F};
}

Ending ReadSlurmEnding(std::string_view raw_state, const SlurmExit& exit, std::string_view raw_reason) {
  const SlurmState state = ReadSlurmState(raw_state);
  Ending ending;
  ending.state = state.state;
  ending.signal = exit.signal;
  ending.reason = state.reason;
  if (exit.signal != 0) {
    ending.exit_status = 128 + exit.signal;
  } else if (exit.status != 0 || ending.state == JobState::kSucceeded) {
    ending.exit_status = exit.status;
  }
  // Slurm cancels by itself what waits for a job that did not succeed.
  if (ending.state == JobState::kCancelled && ending.reason.empty() &&
      raw_reason == "DependencyNeverSatisfied")
    ending.reason = ReadPendingReason(raw_reason).text;
  if (!ending.reason.empty() || ending.state != JobState::kFailed) return ending;
  // Slurm says JobLaunchFailure also of a script that a signal killed.
  if (exit.signal != 0) {
    ending.reason = StrCat("killed by signal ", exit.signal);
  } else if (exit.status == 0 || raw_reason != "NonZeroExitCode") {
    const PendingReason why = ReadPendingReason(raw_reason);
    // sacct keeps the reason for which the job waited last, which says nothing about its end.
    if (why.kind == ReasonKind::kEnded || why.kind == ReasonKind::kNever) ending.reason = why.text;
  }
  return ending;
}

}  // namespace overcap
