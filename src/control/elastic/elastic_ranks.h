// SPDX-License-Identifier: Apache-2.0
// The ranks of one epoch on this node: what they are started with, and what they leave when they fail.
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

std::string ErrorFileOf(const std::string& log_folder, int rank);

// What torch's `record` left there: a line and a traceback. Both empty when there is none, or it is not one.
struct RankError {
  std::string message, traceback;
};
RankError ReadErrorFile(const std::string& path);
RankError ParseErrorFile(const std::string& text);

}  // namespace overcap
