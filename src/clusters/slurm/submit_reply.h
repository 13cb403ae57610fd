// SPDX-License-Identifier: Apache-2.0
// What `sbatch` answers, and what the texts mean with which Slurm's programs fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

struct SubmitReply {
  int64_t job_id = 0;
  std::string cluster;  // only where sbatch names it
};

// What sbatch --parsable printed on stdout: "123" or "123;cluster", below whatever a site's wrapper says.
// kInternal when there is no such line.
Result<SubmitReply> ParseSubmitReply(std::string_view text);

// What was asked for, to name it in the message.
struct ToolContext {
  std::string cluster;  // our name for it
  std::string account = {}, partition = {}, qos = {}, constraint = {};
  // Asked only when something was refused: which there are, or how to find out.
  std::function<std::string()> accounts = {}, partitions = {};
};

struct ToolFailure {
  Error error;  // with the program's own words in brackets
  // The controller may have taken the request nevertheless: look for the job before it is sent again.
  bool maybe_done = false;
};

// For any of Slurm's programs that ended with a status other than 0.
ToolFailure ReadToolFailure(std::string_view program, std::string_view stderr_text, int exit_status,
                            const ToolContext& context);

}  // namespace overcap
