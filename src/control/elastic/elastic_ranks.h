// SPDX-License-Identifier: Apache-2.0
// The ranks of one epoch on this node: what they are started with.
#pragma once

#include <string>
#include <vector>

#include "control/elastic/elastic_options.h"
#include "elastic/messages.h"
#include "sys/supervisor.h"

namespace overcap {

struct ElasticRanks {
  const ElasticOptions& options;
  const elastic::OrderRun& plan;
  std::vector<std::string> env;  // the caller's whole environment
  std::string folder;            // where they start
  std::string log_folder;        // of this epoch
  std::string run_id, socket;
};

// With RANK and its like as torchrun sets them, and no output yet.
std::vector<GroupMember> ElasticMembers(const ElasticRanks& ranks);

}  // namespace overcap
