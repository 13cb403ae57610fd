// SPDX-License-Identifier: Apache-2.0
#include "sys/pidfd_info.h"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

// As in linux/pidfd.h since 6.13, which older systems lack; the kernel takes this first version for ever.
struct PidfdInfo {
  uint64_t mask = 0;
  uint64_t cgroup = 0;
  uint32_t ids[11] = {};
  int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kInfoExit = 1u << 3;
constexpr unsigned long kGetInfo = _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, sizeof(PidfdInfo));

std::string ReadStat(pid_t pid) {
  const Fd fd(open(StrCat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t size = fd ? read(fd.Get(), text.data(), text.size()) : 0;
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

// Without the right to look, the kernel writes 0 for the exit status. That right also governs this link.
bool MayLook(pid_t pid) {
  char target[8];
  return readlink(StrCat("/proc/", pid, "/exe").c_str(), target, sizeof target) >= 0 ||
         (errno != EACCES && errno != EPERM);
}

}  // namespace

Result<Fd> OpenPidfd(pid_t pid) {
  Fd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) return Fail(ErrorCode::kNotFound, StrCat("cannot watch process ", pid));
  return fd;
}

Result<ProcessEnd> EndByPidfd(const Fd& pidfd) {
  PidfdInfo info;
  info.mask = kInfoExit;
  if (ioctl(pidfd.Get(), kGetInfo, &info) != 0) {
    return Fail(ErrorCode::kNotFound, "the kernel does not tell how other processes end");
  }
  if ((info.mask & kInfoExit) == 0) {
    return Fail(ErrorCode::kUnavailable, "the process has not been waited for yet");
  }
  return ProcessEndOf(info.exit_code);
}

Result<ProcessEnd> EndOfZombie(pid_t pid) {
  constexpr size_t kState = 0, kExitCode = 49;  // fields 3 and 52
  const std::string stat = ReadStat(pid);
  const size_t close = stat.rfind(')');
  const auto fields =
      Split(Trim(std::string_view(stat).substr(close == std::string::npos ? stat.size() : close + 1)), ' ');
  if (fields.size() > kExitCode && fields[kState] == "Z" && MayLook(pid)) {
    if (const auto code = ParseInt(fields[kExitCode])) return ProcessEndOf(static_cast<int>(*code));
  }
  return Fail(ErrorCode::kNotFound, StrCat("process ", pid, " does not wait for its parent"));
}

}  // namespace overcap
