// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace overcap {

// A TCP port of this machine that nobody uses now; 0 when there is none. Nothing keeps it free until somebody
// takes it.
int FreePort();

}  // namespace overcap
