// SPDX-License-Identifier: Apache-2.0
// What a cluster's administrators would tell somebody who submits a job. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/cluster_picture.h"
#include "model/job_spec.h"

namespace overcap {

struct AdviceRequest {
  JobSpec spec;  // with the partitions, account and QOS that the configuration adds
  std::string user;
  int64_t age_s = 0;  // of the picture
};

// Whether the jobs of others matter: only for those whose lab has a cap. A picture without jobs does else.
bool AdviceNeedsJobs(const ClusterPicture& picture, const AdviceRequest& request);

// One line each, the most important first; none when nothing is wrong.
std::vector<std::string> AdviceFor(const ClusterPicture& picture, const AdviceRequest& request);

}  // namespace overcap
