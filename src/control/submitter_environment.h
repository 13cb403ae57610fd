// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

// The variables that a job gets from whoever submits it: `environment` (NAME=VALUE) without those that
// describe the submitter's terminal, session or another job, and `given` (--env NAME=VALUE) over them. Sorted
// by name, each once. kUsage when one of `given` is not NAME=VALUE.
Result<std::vector<std::string>> SubmitterEnvironment(const std::vector<std::string>& environment,
                                                      const std::vector<std::string>& given);

// Whether a variable of that name stays with the submitter.
bool StaysWithSubmitter(std::string_view name);

// Without the keys of stores that were not `given`: whoever may read the job's store could read them there.
std::vector<std::string> WithoutStoreKeys(std::vector<std::string> variables,
                                          const std::vector<std::string>& given);

// The blob that is stored: NUL-separated (docs/formats/job-folder.md).
std::string EnvironmentBlob(const std::vector<std::string>& variables);

// This process' own variables.
std::vector<std::string> OwnEnvironment();

}  // namespace overcap
