// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "model/job_spec.h"

namespace overcap {

// The stores of jobs whose nodes do not see the job's folder, as a driver needs them
// (docs/formats/job-store.md). `spec` has a store.
class JobDepot {
 public:
  virtual ~JobDepot() = default;
  // Brings what is new of claims and reports into the job's folder; content with what is a second old.
  virtual Result<void> Refresh(const JobSpec& spec, const std::string& folder) = 0;
  // Puts a small object of the job unless it is there; what is there now.
  virtual Result<std::string> Create(const JobSpec& spec, const std::string& name,
                                     const std::string& text) = 0;
};

}  // namespace overcap
