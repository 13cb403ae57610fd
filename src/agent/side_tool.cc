// SPDX-License-Identifier: Apache-2.0
#include "agent/side_tool.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/pipe.h"

namespace overcap {
namespace {

constexpr size_t kMostText = 64 << 10;

}  // namespace

Result<SideTool> SideTool::Start(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                                 int64_t deadline_us, bool until_gone) {
  OC_TRY(output, MakePipe());
  PipeEnds input;
  if (until_gone) {
    OC_TRY(made, MakePipe());
    input = std::move(made);
  }
  (void)fcntl(output.read.Get(), F_SETFL, O_NONBLOCK);
  SpawnRequest request;
  request.argv = argv;
  request.env = env;
  request.cwd = "/";
  request.stdin_fd = input.read.Get();
  request.stdout_fd = output.write.Get();
  request.parent_death_signal = SIGKILL;
  request.want_pidfd = true;
  OC_TRY(spawned, Spawn(request));
  return SideTool(std::move(spawned), std::move(input.write), std::move(output.read), deadline_us);
}

// One that only waits for its input to end may do so; others are not needed any more.
SideTool::~SideTool() {
  if (process_.pid <= 0 || !process_.pidfd) return;
  if (output_ && !input_) Kill();
  (void)waitpid(process_.pid, nullptr, WNOHANG);  // else whoever waits for children takes it
}

// By its descriptor: its number may be another process's by now.
void SideTool::Kill() {
  (void)syscall(SYS_pidfd_send_signal, process_.pidfd.Get(), SIGKILL, nullptr, 0);
}

bool SideTool::Step(int64_t now_us) {
  char buffer[4096];
  while (output_) {
    const ssize_t size = read(output_.Get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size <= 0 || text_.size() + static_cast<size_t>(size) > kMostText) {
      output_.Reset();
      break;
    }
    text_.append(buffer, static_cast<size_t>(size));
  }
  if (output_ && now_us >= deadline_us_) {
    Kill();
    text_.clear();
    output_.Reset();
  }
  return !output_;
}

}  // namespace overcap
