// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <sys/types.h>

namespace overcap {

// For GroupLimits::leave_alone, asked for before anything is started: true for children that this process has
// now. A script that began something in the background and then became this program (exec) has left them to
// us, and they are not ours to stop. Empty when there are none.
std::function<bool(pid_t)> InheritedChildren();

}  // namespace overcap
