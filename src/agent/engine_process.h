// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace overcap {

// Whether it is an engine, or an agent of one, of this user and this binary. A command of a job may have
// started an engine (any submit does when none runs): then it and its jobs live on when that job ends.
bool IsEngineProcess(pid_t pid);

}  // namespace overcap
