// SPDX-License-Identifier: Apache-2.0
// How root's client does something with the files of another user's job: a child process becomes that user
// for good and runs this program again (docs/formats/system-engine.md, "Root's own client"). Nothing of the
// job is opened before, and the child has no descriptor, variable or terminal of root's: its input and output
// go through pipes, or a terminal of its own, which this process copies.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace overcap {

struct OwnersRun {
  std::string user;                    // who the child becomes
  std::vector<std::string> words;      // what it runs: `overcap WORDS`
  std::vector<std::string> variables;  // NAME=VALUE: how it finds the engine; all others are the user's
  bool input = false;                  // what this process reads is copied to it
  bool terminal = false;  // it gets a terminal of its own; this process has one as input and output
  bool capture = false;   // its output is not printed but returned
  bool clean = false;     // what it prints goes to a terminal without its escape sequences
};

struct OwnersRunEnd {
  int exit_status = 0;  // 128 + N when a signal ended it
  std::string out;      // with `capture`; at most 64 MiB
};

// Runs it to its end. kDenied when the machine's user list does not know the user.
Result<OwnersRunEnd> RunAsOwner(const OwnersRun& run);

// `overcap as-owner --uid N [--terminal] -- WORDS`: the child before it is the user. Hidden: RunAsOwner
// starts it.
Result<int> RunAsOwnerStep(const std::vector<std::string>& words);

// What the child has as its variables besides. Pure.
std::vector<std::string> OwnersVariables(const std::string& name, const std::string& home,
                                         const std::string& shell);

}  // namespace overcap
