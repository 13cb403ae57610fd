// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "snapshot/repository/presence_record.h"

namespace overcap {

ProcessMark OwnProcessMark();

// Whether that process ran on this boot of this machine, in our pid namespace, and is no more. False when it
// cannot be known.
bool SurelyGone(const ProcessMark& mark);

}  // namespace overcap
