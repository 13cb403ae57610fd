// SPDX-License-Identifier: Apache-2.0
#include "control/allocation_end.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <signal.h>
#include <string>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/text.h"
#include "sys/capture_output.h"
#include "sys/clock.h"
#include "sys/fd.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr std::chrono::seconds kPatience{20};
constexpr size_t kAnswerMost = 65'536;

// Those of this process, without what changes the question.
std::vector<std::string> VariablesFor(const Variables& own) {
  Variables wanted;
  for (const std::string& entry : own.entries()) {
    const size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = std::string_view(entry).substr(0, equals);
    if (!name.starts_with("SQUEUE_"))
      wanted.Set(name, std::string_view(entry).substr(std::min(equals + 1, entry.size())));
  }
  wanted.Set("SLURM_TIME_FORMAT", "%s");
  return wanted.entries();
}

// Microseconds of the line that is a time in seconds, among whatever warnings; 0 when there is none.
int64_t TimeIn(std::string_view output) {
  for (const std::string& line : Split(output, '\n')) {
    const auto seconds = ParseInt(Trim(line));
    if (seconds && *seconds > 0 && *seconds < 100'000'000'000) return *seconds * kSecond;
  }
  return 0;
}

}  // namespace

int64_t PauseBeforeNextLookUs(int64_t end_us, int64_t now_us) {
  constexpr int64_t kLeast = 30 * kSecond, kMost = 300 * kSecond;
  return end_us == 0 ? kMost : std::clamp((end_us - now_us) / 4, kLeast, kMost);
}

struct AllocationEndWatch::State {
  State(Variables variables_in, int64_t known_us)
      : variables(std::move(variables_in)), job(variables.Get("SLURM_JOB_ID")), end_us(known_us) {}

  void Work();
  void Ask();

  const PosixClock clock{};
  const Variables variables;
  const std::string job;
  const Fd changed{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<int64_t> end_us;
  std::mutex mutex;  // guards what follows
  std::condition_variable wake;
  bool ends = false, ended = false;
};

AllocationEndWatch::AllocationEndWatch(Variables variables, int64_t known_us)
    : state_(std::make_shared<State>(std::move(variables), known_us)) {
  state_->ended = !ParseInt(state_->job);
  if (state_->ended) return;
  // Signals are for the thread that waits for them: here they would end the process.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([state = state_] { state->Work(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

AllocationEndWatch::~AllocationEndWatch() {
  (void)Stop(std::chrono::seconds(0));
}

bool AllocationEndWatch::Stop(std::chrono::seconds patience) {
  std::unique_lock lock(state_->mutex);
  state_->ends = true;
  state_->wake.notify_all();
  return state_->wake.wait_for(lock, patience, [this] { return state_->ended; });
}

int64_t AllocationEndWatch::end_us() const {
  return state_->end_us;
}

int AllocationEndWatch::PollFd() const {
  return state_->changed.Get();
}

void AllocationEndWatch::Taken() const {
  uint64_t count = 0;
  (void)!read(state_->changed.Get(), &count, sizeof count);
}

void AllocationEndWatch::State::Work() {
  std::unique_lock lock(mutex);
  do {
    lock.unlock();
    Ask();
    lock.lock();
    const std::chrono::microseconds pause(PauseBeforeNextLookUs(end_us, clock.WallUs()));
    wake.wait_for(lock, pause, [this] { return ends; });
  } while (!ends);
  ended = true;
  wake.notify_all();
}

// What Slurm does not say now it has said before, or says the next time.
void AllocationEndWatch::State::Ask() {
  SpawnRequest request;
  request.argv = {"squeue", "--noheader", StrCat("--jobs=", job), "--format=%e"};
  request.env = VariablesFor(variables);
  request.cwd = "/";
  request.parent_death_signal = SIGKILL;
  const Result<Captured> answer = CaptureOutput(std::move(request), kPatience, kAnswerMost);
  const int64_t found_us = answer && answer->end.ok() ? TimeIn(answer->output) : 0;
  if (found_us == 0 || found_us == end_us.exchange(found_us)) return;
  const uint64_t one = 1;
  (void)!write(changed.Get(), &one, sizeof one);
}

}  // namespace overcap
