// SPDX-License-Identifier: Apache-2.0
// A Slurm in memory for tests of the driver: answers sbatch, squeue, sacct, scancel and scontrol, and breaks
// on command.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "clusters/slurm/marked_rows.h"
#include "clusters/slurm/slurm_context.h"

namespace overcap {

class TestingSlurm : public SlurmContext {
 public:
  struct Job {
    int64_t id = 0;
    std::string user, comment, name, state = "PENDING", reason = "Priority";
    int64_t end_s = 0;
  };
  // What the next sbatch does.
  enum class Submit { kAnswers, kRefuses, kIsTakenWithoutAnswer, kIsLostWithoutAnswer, kBreaks };

  explicit TestingSlurm(const std::string& root);

  Result<std::string> Program(std::string_view name) const override;
  Result<ToolAnswer> CallProgram(SpawnRequest request, std::chrono::milliseconds timeout) override;
  Result<std::unique_ptr<ToolRun>> StartProgram(SpawnRequest request,
                                                std::chrono::milliseconds timeout) override;

  std::vector<Job> jobs;
  Submit next = Submit::kAnswers;
  bool away = false;                            // the controller does not answer
  std::vector<std::vector<std::string>> calls;  // of all programs
  std::vector<std::string> environment;         // of the last sbatch
  int started = 0;                              // programs that wait, or waited, for input
  std::vector<std::string> scripts;             // that sbatch was given
  std::function<void()> during_submit;          // happens while sbatch runs

 private:
  ToolAnswer Sbatch(const std::vector<std::string>& argv);
  ToolAnswer Squeue(const std::vector<std::string>& argv);

  int64_t next_id_ = 100;
};

}  // namespace overcap
