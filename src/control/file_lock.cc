// SPDX-License-Identifier: Apache-2.0
#include "control/file_lock.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/text.h"

namespace overcap {

Result<FileLock> LockFile(const std::string& path, std::chrono::milliseconds patience) {
  constexpr int kPauseMs = 20;
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open '", path, "'")));
  for (int64_t waited = 0; flock(fd.Get(), LOCK_EX | LOCK_NB) != 0; waited += kPauseMs) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return Fail(ErrnoError(errno, StrCat("cannot lock '", path, "'")));
    if (waited >= patience.count()) {
      return Fail(ErrorCode::kUnavailable, StrCat("another process keeps '", path, "' locked"),
                  "try again in a moment");
    }
    usleep(kPauseMs * 1000);
  }
  return FileLock{std::move(fd)};
}

}  // namespace overcap
