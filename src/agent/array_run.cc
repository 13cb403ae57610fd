// SPDX-License-Identifier: Apache-2.0
#include "agent/array_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/ending.h"
#include "agent/rank_environment.h"
#include "base/text.h"
#include "model/agent_report.h"

namespace overcap {
namespace {

// The report is synced at most this often; starts in between are made durable by the counter of tasks.
constexpr int64_t kSyncUs = 50'000;
constexpr int64_t kRoomPauseUs = 1'000'000;
constexpr int kRoomTries = 600;
constexpr int64_t kTaskBytes = 2048;  // more than the lines of one task need

}  // namespace

ArrayRun::ArrayRun(const JobSpec& spec, const AgentOptions& options, const AttemptFolder& attempt,
                   const Clock& clock, Supervisor* supervisor, ReportFile* report, Ranks* ranks,
                   EndingJudge judge)
    : spec_(spec),
      options_(options),
      retry_tasks_(options.retry_tasks),
      attempt_(attempt),
      clock_(clock),
      supervisor_(*supervisor),
      report_(*report),
      ranks_(*ranks),
      judge_(std::move(judge)),
      may_repeat_(!options.under.empty() || spec.requeue || spec.max_restarts > 0) {}

Ending ArrayRun::Run(TaskCounter counter) {
  counter_ = &counter;
  report_.Write(StartedLine(clock_.WallUs(), {}, ranks_.MasterPort()));
  Ending ending = RunTasks();
  report_.Flush();  // the last task has ended; cleaning up takes time
  report_.Sync();   // the engine records how many tasks succeeded, only the report has which
  return ending;
}

Ending ArrayRun::RunOne(int task) {
  report_.Write(StartedLine(clock_.WallUs(), {}, ranks_.MasterPort()));
  if (!MakeRoom()) return CannotRun("the disk is full: the task was not begun");
  if (supervisor_.CancelRequested()) return {JobState::kCancelled, -1, 0, -1, ""};
  Ending ending = RunTask(task, FirstFreeTry(task));
  report_.Flush();
  return ending;
}

Ending ArrayRun::RunTasks() {
  while (!supervisor_.CancelRequested()) {
    if (supervisor_.DrainRequested()) return {JobState::kSucceeded, 0, 0, -1, "drained"};
    if (!MakeRoom()) return CannotRun("the disk is full: no task was taken");
    const bool again = retried_ < retry_tasks_.size();
    const std::optional<int> task = NextTask();
    if (!task) return {JobState::kSucceeded, 0, 0, -1, ""};
    Ending ending = RunTask(*task, again ? FirstFreeTry(*task) : 1);
    if (ending.state == JobState::kCancelled) return ending;
  }
  return {JobState::kCancelled, -1, 0, -1, ""};
}

std::optional<int> ArrayRun::NextTask() {
  position_ = -1;
  if (retried_ < retry_tasks_.size()) return retry_tasks_[retried_++];
  position_ = counter_->Take();
  if (position_ >= spec_.array.Count()) return std::nullopt;
  return spec_.array.IndexAt(static_cast<int>(position_));
}

Ending ArrayRun::RunTask(int task, int first_try) {
  task_ = task;
  for (int attempt = first_try;; ++attempt) {
    Ending ending = RunTry(task, attempt);
    const bool again = ending.state == JobState::kFailed && attempt - first_try < spec_.max_restarts;
    if (!again || stopped_ || supervisor_.CancelRequested()) return ending;
    (void)report_.Reserve(kTaskBytes);  // where it fails the room of the ending is used
  }
}

// The line of the end waits for that of the next start, two lines in one write: between the two there is only
// the question what comes next. Whatever may take longer flushes it first.
Ending ArrayRun::RunTry(int task, int attempt) {
  std::vector<std::string> logs;
  for (size_t rank = 0; rank < ranks_.Size(); ++rank) {
    logs.push_back(attempt_.TaskLog(task, attempt, static_cast<int>(rank)));
  }
  report_.Write(TaskStartLine(clock_.WallUs(), task, attempt));
  MakeStartDurable();
  ranks_.NameTask(task, attempt);
  const std::string state = StateFolder(options_, task);
  if (may_repeat_) (void)mkdir(state.c_str(), 0700);  // where it cannot be made, a task that needs it says so
  Ending ending = ranks_.Run(logs, this);
  if (may_repeat_) (void)rmdir(state.c_str());  // when nothing was left in it
  stopped_ = ending.state == JobState::kCancelled;
  if (judge_) ending = judge_(ending);
  report_.Queue(TaskEndLine(clock_.WallUs(), task, attempt, ending));
  return ending;
}

// A task that is given again was begun by an agent that is gone; its logs are kept.
int ArrayRun::FirstFreeTry(int task) {
  report_.Flush();
  int attempt = 1;
  while (access(attempt_.TaskLog(task, attempt, 0).c_str(), F_OK) == 0) ++attempt;
  return attempt;
}

// No task is begun whose end could not be written.
bool ArrayRun::MakeRoom() {
  for (int i = 0; i < kRoomTries; ++i) {
    if (report_.Reserve(kTaskBytes)) return true;
    supervisor_.Pause(kRoomPauseUs);
    if (supervisor_.CancelRequested()) return true;
  }
  return false;
}

// Before the task's command runs, so that a power cut cannot make it run twice.
void ArrayRun::MakeStartDurable() {
  if (synced_us_ && clock_.MonotonicUs() - *synced_us_ < kSyncUs) {
    if (position_ >= 0) counter_->MayBegin(position_);
    return;
  }
  report_.Sync();
  synced_us_ = clock_.MonotonicUs();
}

void ArrayRun::OnNote(const std::string& text) {
  report_.WriteIfRoom(NoteLine(clock_.WallUs(), StrCat("task ", task_, ": ", text)));
}

}  // namespace overcap
