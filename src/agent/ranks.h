// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/job_state.h"
#include "sys/supervisor.h"

namespace overcap {

// Under Overcap's own variables of a rank.
struct RankVariables {
  std::string_view submitter;               // NUL-separated NAME=VALUE
  const std::vector<std::string>& cluster;  // over these; see RankSetting
};

// All ranks of an attempt, made ready once and run once, or once for each task of an array.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual size_t Size() const = 0;
  virtual int MasterPort() const = 0;  // 0: not yet known
  virtual const std::vector<std::string>& FirstEnvironment() const = 0;
  virtual void NameTask(int task, int attempt) = 0;  // arrays, before each Run
  // Runs all to their end, with their output in these new files, one each.
  virtual Ending Run(const std::vector<std::string>& logs, GroupObserver* observer) = 0;
};

}  // namespace overcap
