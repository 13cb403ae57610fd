// SPDX-License-Identifier: Apache-2.0
// A run that is over, or goes on, as far as it tells how long others will take. Data only.
#pragma once

#include <cstdint>
#include <string>

namespace overcap {

struct PastRun {
  std::string user = {}, lab = {}, partition = {};
  int64_t limit_s = 0;  // 0: it had none
  int64_t run_s = 0;
  int64_t ended_us = 0;
  int gpus = 0;          // where that is told
  bool goes_on = false;  // it has not ended: so long it runs already
};

}  // namespace overcap
