// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "clusters/job_depot.h"

namespace overcap {

// That opens stores with the keys of this process.
std::shared_ptr<JobDepot> MakeJobDepot();

}  // namespace overcap
