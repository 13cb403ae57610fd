// SPDX-License-Identifier: Apache-2.0
// Runs one of Slurm's programs. Its standard output is data, its standard error is for people:
// a warning must not get among the rows.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/process.h"

namespace overcap {

struct ToolAnswer {
  ProcessEnd end;
  std::string out;
  std::string err;  // the first 64 KiB
};

// A program on its way. One that was neither waited for nor left is killed when this goes, before it sees the
// end of its input; any dies when the calling thread does.
class ToolRun {
 public:
  virtual ~ToolRun() = default;
  // All that it reads from its standard input, once; then that ends. Short: what it says meanwhile is read
  // later. One that does not want it any more says so in its answer.
  virtual void Give(std::string_view input) = 0;
  // Until its standard output has a line or ends. kUnavailable as Finish().
  virtual Result<std::string> Line() = 0;
  // Until it ends. kUnavailable when that is not in time or when it prints too much: then its process group
  // is killed.
  virtual Result<ToolAnswer> Finish() = 0;
  // How it ends matters to nobody any more: it is not waited for.
  virtual void Leave() = 0;
};

// The time counts from now; `max_out` is the most that it may print. Errors: it could not be started.
Result<std::unique_ptr<ToolRun>> StartTool(SpawnRequest request, std::chrono::milliseconds timeout,
                                           size_t max_out);

// From its start to its end, without input.
Result<ToolAnswer> CallTool(SpawnRequest request, std::chrono::milliseconds timeout, size_t max_out);

}  // namespace overcap
