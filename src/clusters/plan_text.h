// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/job_spec.h"

namespace overcap {

// The job for people, one `word  value` per line, fields without a value left out. Shown by `--dry-run`.
std::string PlanText(const JobSpec& spec);

// "2 GPUs of type 'a40', 2 ranks, 4 CPUs, 16.0 GiB, at most 4h": what a job asks for, on one line.
std::string ResourcesText(const Resources& resources);

}  // namespace overcap
