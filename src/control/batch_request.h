// SPDX-License-Identifier: Apache-2.0
// What the directives of a batch script ask for.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "control/batch_script.h"
#include "control/job_request.h"

namespace overcap {

// A script of a request: the first word of its command names a file in its folder that has directives.
struct FoundScript {
  std::string name;  // as it was typed
  std::string path;  // in the folder
  std::string text;
};
// nullopt: the command is no such script. kUsage when it lies outside of the folder: it could not be frozen.
Result<std::optional<FoundScript>> FindBatchScript(const JobRequest& request);

// Fills in what the request does not say itself: its flags win. The command becomes the script's interpreter
// with the script and its words. Jobs to wait for are added to `after` as the script names them. What cannot
// be had on a cluster with these capabilities, and what Overcap does otherwise, is told in notes. kUsage
// "job.sh:3: ..." for a directive that cannot be understood. Pure.
Result<void> ApplyBatchScript(const FoundScript& found, const Capabilities& can, JobRequest* request,
                              std::vector<Dependency>* after);

}  // namespace overcap
