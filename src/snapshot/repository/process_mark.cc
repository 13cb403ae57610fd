// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/process_mark.h"

#include <cerrno>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/file_io.h"
#include "sys/own_host_name.h"

namespace overcap {
namespace {

// Field 22 of /proc/PID/stat, counted behind the name, which may hold anything; 0 when it cannot be read.
int64_t StartOf(int64_t pid) {
  const std::string stat = ReadFileOrNothing(AT_FDCWD, StrCat("/proc/", pid, "/stat"));
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return 0;
  const std::vector<std::string> fields = Split(std::string_view(stat).substr(name_end + 2), ' ');
  return fields.size() > 19 ? ParseInt(fields[19]).value_or(0) : 0;
}

std::string PidSpace() {
  Result<std::string> target = ReadLinkAt(AT_FDCWD, "/proc/self/ns/pid");
  return target ? *std::move(target) : std::string();
}

std::string BootId() {
  const std::string text = ReadFileOrNothing(AT_FDCWD, "/proc/sys/kernel/random/boot_id");
  return std::string(Trim(text));
}

}  // namespace

ProcessMark OwnProcessMark() {
  const int64_t pid = getpid();
  return {
      .host = OwnHostName(), .pid = pid, .boot = BootId(), .pid_space = PidSpace(), .started = StartOf(pid)};
}

bool SurelyGone(const ProcessMark& mark) {
  if (mark.boot.empty() || mark.pid_space.empty() || mark.started == 0 || mark.pid <= 0) return false;
  if (mark.boot != BootId() || mark.pid_space != PidSpace()) return false;
  if (kill(static_cast<pid_t>(mark.pid), 0) != 0 && errno == ESRCH) return true;
  const int64_t started = StartOf(mark.pid);
  return started != 0 && started != mark.started;
}

}  // namespace overcap
