// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "launch/foreign/launcher_words.h"
#include "launch/runner.h"

namespace overcap {

// Which of the ranks under a launcher failed by itself, and first: from the ends that their hosts told, in
// order of arrival, what the launcher said, and how it ended. Launchers kill the other ranks when one fails,
// and that news may come first. Pure.
class FirstFailure {
 public:
  void OnBegun(int rank, long long pid, const std::string& host) { begun_.push_back({rank, pid, host}); }
  // Well or not, but not by our own doing.
  void OnEnded(const RankFailure& how, int64_t now_us) { ended_.push_back({how, now_us}); }

  // Something has failed for certain: the rest is to be stopped.
  bool Certain(const std::vector<LauncherFinding>& findings) const;
  // `launcher` is how the launcher ended; nullopt: it has not, or we ended it.
  std::optional<RankFailure> Choose(const std::vector<LauncherFinding>& findings,
                                    const std::optional<ProcessEnd>& launcher) const;

 private:
  struct Begun {
    int rank;
    long long pid;
    std::string host;
  };
  struct Ended {
    RankFailure how;
    int64_t at_us;
  };
  const Ended* Failed() const;  // the first whose end is known and bad
  const RankFailure* EndOf(int rank) const;
  const RankFailure* BehindKill(const Ended& killed, const std::optional<ProcessEnd>& launcher) const;
  std::optional<RankFailure> Of(const LauncherFinding& finding) const;

  std::vector<Begun> begun_;
  std::vector<Ended> ended_;
};

}  // namespace overcap
