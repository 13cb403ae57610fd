// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace overcap {

// What a command does on a FakeCluster, told by its words alone.
struct FakeProgram {
  int64_t seconds = 0;  // how long it runs
  int exit_status = 0;
  int signal = 0;  // not 0: dies by it
};

// `true`, `false`, `sleep N`, `exit N`, `kill SIGNAL`, and `sh -c "<one of these>"`; parts joined with ';'
// run one after the other, the last one gives the status. Anything else succeeds at once.
FakeProgram FakeProgramOf(const std::vector<std::string>& command);

}  // namespace overcap
