// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <string>
#include <string_view>
#include <vector>

#include "sys/fd.h"

namespace overcap {

// Our own stdout (1) and stderr (2), whatever they are, written without ever waiting for who reads them. What
// was begun goes on before anything else does. SIGPIPE must be blocked or ignored by the caller.
class OwnStreams {
 public:
  OwnStreams();

  bool Broken(int stream) const { return broken_[place_[stream]]; }  // nobody reads it any more

  std::string Problem() const;  // "" or why one takes no more, unless its reader simply went away

  bool Ready(int stream);                       // it takes kChunk bytes or more right now
  void Put(int stream, std::string_view text);  // only after Ready(); what does not go now is kept
  void Flush();                                 // goes on with what was kept

  bool Waits() const { return waits_[1] || waits_[2]; }  // Ready() or Flush() has found one that is full
  void AddFds(std::vector<pollfd>* fds) const;           // of these
  bool WaitUntilTaken(int ms) const;                     // false: the time is over
  void GiveUp();                                         // those that are full count as broken

  static constexpr size_t kChunk = 4096;  // PIPE_BUF: what a pipe that polls writable takes without waiting

 private:
  bool Full(int place) const;
  bool FlushOne(int place);  // true when nothing is left
  int FdOf(int place) const { return terminal_[place] ? terminal_[place].Get() : place; }

  int place_[3] = {0, 1, 2};  // both are 1 when they lead to the same pipe or terminal
  Fd terminal_[3];            // opened again: that a write does not wait must not touch others who have it
  int error_[3] = {};         // errno of the write that failed
  bool to_file_[3] = {}, broken_[3] = {}, waits_[3] = {};
  std::string kept_[3];
};

}  // namespace overcap
