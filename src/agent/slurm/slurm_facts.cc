// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_facts.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int64_t kUsualKillWait = 30;
enum Column { kState, kRestarts, kStart, kLimit, kPreempt, kColumns };

// "1-02:03:04", "02:03:04", "03:04"; 0 for "UNLIMITED" and whatever else is no time.
int64_t SecondsOf(std::string_view text) {
  int64_t days = 0;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    days = ParseInt(text.substr(0, dash)).value_or(0);
    text.remove_prefix(dash + 1);
  }
  int64_t seconds = 0;
  const std::vector<std::string> parts = Split(text, ':');
  for (const std::string& part : parts) {
    const auto number = ParseInt(part);
    if (!number || *number < 0 || *number > 1'000'000) return 0;
    seconds = seconds * 60 + *number;
  }
  return parts.size() < 2 || days < 0 || days > 1'000'000 ? 0 : days * 86'400 + seconds;
}

}  // namespace

std::vector<std::string> SlurmFactsCommand(const std::string& name) {
  return {"squeue",
          "--noheader",
          "--all",
          "--states=all",
          StrCat("--jobs=", name),
          "--Format=State:|,RestartCnt:|,StartTime:|,TimeLimit:|,PreemptTime:|"};
}

std::optional<SlurmJobFacts> ParseSlurmFacts(std::string_view text) {
  for (const std::string& line : Split(text, '\n')) {
    std::vector<std::string> fields = Split(line, '|');
    if (fields.size() < kColumns) continue;  // a warning
    for (std::string& field : fields) field = Trim(field);
    const auto restarts = ParseInt(fields[kRestarts]);
    if (fields[kState].empty() || !restarts || *restarts < 0 || *restarts > 1'000'000) continue;
    SlurmJobFacts facts;
    facts.state = fields[kState];
    facts.restarts = static_cast<int>(*restarts);
    if (const auto start = ParseInt(fields[kStart]); start && *start > 0 && *start < (int64_t{1} << 40))
      facts.start_us = *start * 1'000'000;
    facts.limit_seconds = SecondsOf(fields[kLimit]);
    facts.preempted = ParseInt(fields[kPreempt]).value_or(0) > 0;
    return facts;
  }
  return std::nullopt;
}

std::vector<std::string> SlurmToolVariables(const Variables& own) {
  Variables wanted;
  for (const std::string& entry : own.entries()) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (name.starts_with("SQUEUE_") || name.starts_with("SCONTROL_")) continue;
    wanted.Set(name, std::string_view(entry).substr(std::min(name.size() + 1, entry.size())));
  }
  wanted.Set("SLURM_TIME_FORMAT", "%s");
  return wanted.entries();
}

int64_t KillWaitSeconds(std::string_view slurm_conf) {
  for (const std::string& line : Split(slurm_conf, '\n')) {
    std::string word(Trim(line));
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
    const size_t equals = word.find('=');
    if (equals == std::string::npos || Trim(word.substr(0, equals)) != "killwait") continue;
    const std::string value(Trim(word.substr(equals + 1, word.find('#') - equals - 1)));
    if (const auto seconds = ParseInt(value); seconds && *seconds >= 0 && *seconds <= 65'535) return *seconds;
  }
  return kUsualKillWait;
}

}  // namespace overcap
