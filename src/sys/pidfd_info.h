// SPDX-License-Identifier: Apache-2.0
// How a process ended that is no child of ours.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "sys/fd.h"
#include "sys/process.h"

namespace overcap {

// A descriptor of a process; kNotFound when it is gone or the kernel (before 5.3) has no such thing.
Result<Fd> OpenPidfd(pid_t pid);

// Of the process behind `pidfd`, which need not be a child. kUnavailable while its parent has not taken its
// exit status (ask again when poll gives POLLHUP); kNotFound when this kernel does not tell (before 6.15).
Result<ProcessEnd> EndByPidfd(const Fd& pidfd);

// Of a process that has ended and whose parent has not taken its exit status yet; on any kernel. kNotFound
// when it is not in that state, or is not ours. `pid` must not have been reused.
Result<ProcessEnd> EndOfZombie(pid_t pid);

}  // namespace overcap
