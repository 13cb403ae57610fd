// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace overcap {

// From now on a failed allocation in any thread ends the program with one line on stderr and the exit status
// for a failure of the system.
void EndWithALineWithoutMemory();

}  // namespace overcap
