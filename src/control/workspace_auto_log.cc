// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_auto_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr off_t kMostBytes = 1 << 20;  // then the file is kept as FILE.1 and a new one begins

bool IsSameFile(int fd, const struct stat& info) {
  struct stat other {};
  return fstat(fd, &other) == 0 && other.st_ino == info.st_ino && other.st_dev == info.st_dev;
}

bool IsFile(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

void AutoLog::Write(std::string_view line, bool important) {
  const std::string time = FormatTimeUtc(PosixClock().WallUs()).substr(0, 19);
  const std::string text = StrCat(time, "Z ", ToUtf8(line), "\n");
  if (path_.empty()) {
    (void)WriteAll(STDERR_FILENO, text);
    return;
  }
  // Opened each time: it may be on a file system that comes and goes.
  const Fd fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  struct stat info {};
  const bool open = fd && fstat(fd.Get(), &info) == 0;
  if (open) (void)WriteAll(fd.Get(), text);
  if (open && info.st_size > kMostBytes) (void)rename(path_.c_str(), (path_ + ".1").c_str());
  const bool elsewhere = !open || !IsSameFile(STDERR_FILENO, info);
  if (important && in_job_ && elsewhere && IsFile(STDERR_FILENO))
    (void)WriteAll(STDERR_FILENO, "overcap: " + text);
}

}  // namespace overcap
