// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <poll.h>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/fd.h"
#include "sys/proc_table.h"
#include "sys/process.h"

namespace overcap {

// A rank that somebody else has started: its process is watched, its output read.
class WatchedRank {
 public:
  // What ended it, as far as it can be learned; nullopt: nobody tells.
  using End = std::optional<ProcessEnd>;

  // `pid` must be alive and ours; pipes are made non-blocking.
  WatchedRank(int rank, pid_t pid, Fd out, Fd err);

  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }
  bool alive() const { return alive_; }
  bool OutputOpen() const { return pipes_[0] || pipes_[1]; }
  void CloseOutput() { pipes_[0].Reset(), pipes_[1].Reset(); }

  int pidfd() const { return pidfd_.Get(); }  // readable when it has died; -1: the kernel has none
  void AddOutputFds(std::vector<pollfd>* fds) const;
  int64_t NextUs(int64_t now_us) const;  // when CheckEnd wants to be called at the latest

  // How it ended, once: when that is known, or a second after its death. A dead process whose exit status is
  // not known yet counts as alive until then.
  std::optional<End> CheckEnd(int64_t now_us);

  // What is to be read now, up to the size of `buffer`; `stream` is 1 or 2. 0: nothing now, or it has ended.
  size_t Read(int stream, std::string* buffer);

  // To its process group when it leads one, else to itself.
  void Signal(int sig) const;
  std::optional<pid_t> Group() const;  // that Signal() reaches

 private:
  bool HasDied() const;

  int rank_;
  pid_t pid_;
  Fd pidfd_;                                 // not valid: an old kernel
  std::optional<ProcessIdentity> identity_;  // then this tells
  std::array<Fd, 2> pipes_;
  bool alive_ = true;
  int64_t died_us_ = 0;  // 0: not seen yet
};

}  // namespace overcap
