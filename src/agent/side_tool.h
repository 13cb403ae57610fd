// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <poll.h>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/clock.h"
#include "sys/process.h"

namespace overcap {

// A helper program that runs beside the ranks, for what it prints. Nothing here waits. Its exit status is not
// looked at: whoever looks after the ranks may have taken it.
class SideTool {
 public:
  // Ended by force when it has not ended by `deadline_us` (monotonic). Its standard input is empty; with
  // `until_gone` it lasts as long as this object.
  static Result<SideTool> Start(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                                int64_t deadline_us, bool until_gone = false);
  SideTool(SideTool&&) = default;
  SideTool& operator=(SideTool&&) = delete;
  ~SideTool();

  pollfd PollFd() const { return {output_.Get(), POLLIN, 0}; }
  int64_t DeadlineUs() const { return deadline_us_; }
  // Reads what is there; true when there is no more to come.
  bool Step(int64_t now_us);
  pid_t pid() const { return process_.pid; }
  const std::string& text() const { return text_; }

 private:
  SideTool(Spawned process, Fd input, Fd output, int64_t deadline_us)
      : process_(std::move(process)),
        input_(std::move(input)),
        output_(std::move(output)),
        deadline_us_(deadline_us) {}
  void Kill();

  Spawned process_;
  Fd input_, output_;
  int64_t deadline_us_;
  std::string text_;
};

}  // namespace overcap
