// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt_folder.h"
#include "agent/ranks.h"
#include "agent/report_file.h"
#include "agent/task_counter.h"
#include "model/job_spec.h"
#include "sys/clock.h"

namespace overcap {

// What the end of a run means on this cluster. Called once for each run.
using EndingJudge = std::function<Ending(const Ending&)>;

// Takes tasks of an array, one at a time, until none is left or it is told to stop.
class ArrayRun : public GroupObserver {
 public:
  ArrayRun(const JobSpec& spec, const AgentOptions& options, const AttemptFolder& attempt, const Clock& clock,
           Supervisor* supervisor, ReportFile* report, Ranks* ranks, EndingJudge judge = {});

  Ending Run(TaskCounter counter);
  Ending RunOne(int task);  // this one only, in the first try that has no logs yet; its own ending

  void OnStarted(const std::vector<pid_t>&) override {}
  void OnMemberEnd(int, const ProcessEnd&) override {}
  void OnNote(const std::string& text) override;

 private:
  Ending RunTasks();
  std::optional<int> NextTask();
  Ending RunTask(int task, int first_try);
  Ending RunTry(int task, int attempt);
  void MakeStartDurable();
  int FirstFreeTry(int task);
  bool MakeRoom();

  const JobSpec& spec_;
  const AgentOptions& options_;
  std::vector<int> retry_tasks_;
  const AttemptFolder& attempt_;
  const Clock& clock_;
  Supervisor& supervisor_;
  ReportFile& report_;
  Ranks& ranks_;
  EndingJudge judge_;
  const bool
      may_repeat_;        // then a task's state folder is made; else only its name is told, folders cost time
  bool stopped_ = false;  // the last try was told to stop
  size_t retried_ = 0;
  int task_ = -1;
  TaskCounter* counter_ = nullptr;
  int64_t position_ = -1;             // of the task in the counter; -1: it was not taken from there
  std::optional<int64_t> synced_us_;  // when the report was last synced
};

}  // namespace overcap
