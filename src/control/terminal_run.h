// SPDX-License-Identifier: Apache-2.0
// Runs a program that takes over the terminal, and stays beside it: to say why it waits, and what its
// messages mean.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "clusters/cluster_sessions.h"

namespace overcap {

struct TerminalRun {
  int exit_status = 0;       // its own; 128 + signal
  bool interrupted = false;  // by Ctrl-C, before it had taken over the terminal
};

struct TerminalWatch {
  // HUP says that whoever asked for the program has left: it is given time to end by itself, and nothing that
  // it writes to stderr matters any more.
  bool caller_leaves = false;
  std::function<bool(std::string_view line)> is_chatter =
      {};                                 // lines of its stderr to leave out; may be empty
  std::function<void()> waiting = {};     // every second until it takes over; may be empty
  std::function<void()> taken_over = {};  // once; may be empty
};

// Until the program ends; it works without a terminal, too. Keys, window size and signals are the terminal's
// own; TERM and HUP to this process are passed on, and what does not end then is killed.
Result<TerminalRun> RunOnTerminal(const Replacement& plan, const TerminalWatch& watch);

// Drops lines of chatter from what a program writes to stderr. Only what may become such a line (it begins
// with the program's name) is kept back until it ends.
class StderrFilter {
 public:
  StderrFilter(std::string_view program, std::function<bool(std::string_view line)> is_chatter)
      : start_(std::string(program) + ": "), is_chatter_(std::move(is_chatter)) {}
  std::string Take(std::string_view bytes);
  std::string Finish();  // the rest

 private:
  bool MayBeChatter(std::string_view line) const;
  std::string Passed(std::string_view line) const;

  std::string start_;
  std::function<bool(std::string_view line)> is_chatter_;
  std::string open_;         // kept back
  bool line_begun_ = false;  // a part of this line has passed
};

}  // namespace overcap
