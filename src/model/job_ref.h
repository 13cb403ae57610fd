// SPDX-License-Identifier: Apache-2.0
// How users name jobs: a whole id, its last characters, or `last`.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

// What is known of a job when a name is looked up. The views must outlive the call.
struct JobRefCandidate {
  std::string_view id;
  std::string_view name = {};
};

// The one job that `ref` names. kConflict lists the candidates of an ambiguous suffix with their commands,
// one per line and the newest first; kNotFound suggests the nearest, or the id of a job of that name.
// `command_of` is asked only for jobs that a message names. The candidates are in the order of submission as
// the cluster knows it, not by time: clocks may have been set.
Result<std::string> ResolveJobRef(std::string_view ref, const std::vector<JobRefCandidate>& jobs,
                                  const std::function<std::string(std::string_view id)>& command_of);

}  // namespace overcap
