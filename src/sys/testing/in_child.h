// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace overcap {

// Runs `body` in a forked process, so that what it does to signals and children stays there, and returns what
// it returned; "died" when it ended otherwise and "timeout" when it took over a minute.
inline std::string InChild(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "died";
  const pid_t pid = fork();
  if (pid == 0) {
    const std::string text = body() + ".";
    const bool told = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  std::string out;
  char buffer[4096];
  pollfd fd{ends[0], POLLIN, 0};
  ssize_t size = 0;
  while (poll(&fd, 1, 60'000) > 0 && (size = read(ends[0], buffer, sizeof buffer)) > 0)
    out.append(buffer, size);
  close(ends[0]);
  if (size > 0 || (out.empty() && fd.revents == 0)) kill(pid, SIGKILL), out = "timeout.";
  waitpid(pid, nullptr, 0);
  if (out.empty()) return "died";
  out.pop_back();
  return out;
}

}  // namespace overcap
