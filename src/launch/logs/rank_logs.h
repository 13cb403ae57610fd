// SPDX-License-Identifier: Apache-2.0
// The output of the ranks of one attempt: each in its own file, with times beside it, and on the terminal
// what the user wants to see there (docs/formats/launch-folder.md).
#pragma once

#include <cstdint>
#include <functional>
#include <poll.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

// kAll: whole lines of all ranks, each with its rank before it; kPlain: without the rank.
enum class Tee { kNone, kRank0, kAll, kPlain };
inline bool ShowsAllRanks(Tee tee) {
  return tee == Tee::kAll || tee == Tee::kPlain;
}

// What of a rank is on the terminal. Of several ranks whole lines are shown, so that they do not mix.
struct RankView {
  int shown = 0, marked = 0;  // streams: 1, 2, or 3 for both; `mark` precedes lines of those that are marked
  std::string mark;
};

class RankLogs {
 public:
  // Makes `folder`/rank-R.log for every rank, and sees to it that this process may open as many files as it
  // needs for so many ranks. They are called `first_rank` and up; all other functions here count from 0.
  static Result<RankLogs> Make(const std::string& folder, int ranks, Tee tee, int first_rank = 0);
  RankLogs(RankLogs&&) noexcept;
  RankLogs& operator=(RankLogs&&) noexcept;
  ~RankLogs();

  // From now on, in the place of what `tee` says; one for each rank, or none: no change.
  void ShowAs(std::vector<RankView> views);

  // Logs that grow beyond `max` lose their middle (sys/log_bound.h); Problem() says that one has.
  void Bound(int64_t max);

  // Appends what came through a pipe or over a connection: keeps its time, shows it, counts as a sign of
  // life. `stream` is 1 or 2, `now_us` since 1970. A full disk drops it (Problem() says so), it never waits.
  void Write(int rank, int stream, std::string_view bytes, int64_t now_us);

  // From now on ranks may have FileOf(rank) as their stdout, besides what is given to Write() for them.
  // Changes nothing where that would hurt them: nearly no room on the disk, a limit of file sizes, no plain
  // files.
  void LetRanksWrite(int64_t monotonic_us);
  int FileOf(int rank) const;  // -1: all output has to come through Write()
  // Takes notice of what they wrote: after a wait for what PrepareLook() adds, until the time that it gives
  // (monotonic). True when there was something.
  int64_t PrepareLook(std::vector<pollfd>* fds) const;
  bool Look(int64_t monotonic_us, int64_t now_us);
  bool LookAtAll(int64_t now_us);  // at once
  void TakeBack(int64_t now_us);   // the ranks have ended: the last look

  // The terminal may be slow; logs never wait for it. Show() writes as much as goes without waiting, some
  // megabytes at most; when that was not all, WantsToShow() is true and gives what to poll for. ShowRest()
  // writes all that is left, waiting as long as give_up(), which it asks now and then, is false.
  bool WantsToShow(std::vector<pollfd>* fds) const;
  void Show();
  void ShowRest(const std::function<bool()>& give_up);

  int64_t LastOutputUs() const;                      // of any rank; 0: none yet
  std::string LastLines(int rank, int lines) const;  // for people: valid UTF-8, long lines cut
  std::string PathOf(int rank) const;
  std::string Problem() const;  // "" or why output was dropped or could not be shown

 private:
  struct Impl;
  Impl* impl_;
  explicit RankLogs(Impl* impl) : impl_(impl) {}
};

}  // namespace overcap
