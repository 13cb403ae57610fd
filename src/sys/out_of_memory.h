// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace overcap {

// From now on, memory that cannot be had ends the program with one line on stderr and the exit status of a
// failure of the system, in whichever thread that happens.
void EndWithALineWithoutMemory();

}  // namespace overcap
