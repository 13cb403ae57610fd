// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "launch/launcher_words.h"
#include "launch/runner.h"

namespace overcap {

// Which of the ranks under a launcher failed by itself, and first: from the ends that their hosts told, in
// order of arrival, what the launcher said, and how it ended. Launchers kill the other ranks when one fails,
// and that news may come first. Pure.
class FirstFailure {
 public:
  void OnBegun(int rank, long long pid, const std::string& host) { begun_.push_back({rank, pid, host}); }
  void OnEnded(const RankFailure& how) { ended_.push_back(how); }  // well or not

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
  const RankFailure* Failed() const;  // the first whose end is known and bad
  const RankFailure* EndOf(int rank) const;
  std::optional<RankFailure> Of(const LauncherFinding& finding) const;

  std::vector<Begun> begun_;
  std::vector<RankFailure> ended_;
};

}  // namespace overcap
