// SPDX-License-Identifier: Apache-2.0
#include "agent/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/fresh_open.h"
#include "sys/prompt_files.h"

namespace overcap {
namespace {

constexpr int64_t kEndingBytes = 4096;

// Takes the blocks without changing the size; where the file system cannot do that, NULs are written.
int Allocate(int fd, int64_t offset, int64_t size) {
  if (fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, size) == 0) return 0;
  if (errno != EOPNOTSUPP) return errno;
  return posix_fallocate(fd, offset, size);
}

}  // namespace

Result<ReportFile> ReportFile::Make(const std::string& path) {
  ReportFile file;
  file.path_ = path;
  file.fd_ = Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.fd_) return Fail(ErrnoError(errno, StrCat("cannot make '", path, "'")));
  file.kept_here_ = HostsKeepCaches(file.fd_.Get());
  OC_TRY_VOID(file.Reserve(kEndingBytes));
  return file;
}

Result<void> ReportFile::Reserve(int64_t bytes) {
  constexpr int64_t kStep = 64 << 10;
  const int64_t needed = offset_ + static_cast<int64_t>(queued_.size()) + bytes + kEndingBytes;
  if (needed <= reserved_) return {};
  Flush();
  const int64_t more = reserved_ == 0 ? needed : needed - reserved_ + kStep;
  int error = Allocate(fd_.Get(), reserved_, more);
  if (error == EINTR) error = Allocate(fd_.Get(), reserved_, more);
  if (error != 0) return Fail(ErrnoError(error, StrCat("cannot extend '", path_, "'")));
  reserved_ += more;
  return {};
}

void ReportFile::Write(std::string_view line) {
  queued_ += line;
  size_t done = 0;
  while (done < queued_.size()) {
    const ssize_t written = pwrite(fd_.Get(), queued_.data() + done, queued_.size() - done, offset_);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      if (error_ == 0) error_ = errno;
      break;
    }
    done += written;
    offset_ += written;
  }
  queued_.clear();
  if (kept_here_) SendOn(fd_.Get());
}

void ReportFile::WriteIfRoom(std::string_view line) {
  const int64_t size = static_cast<int64_t>(queued_.size() + line.size());
  if (offset_ + size + kEndingBytes <= reserved_) Write(line);
}

void ReportFile::Sync() {
  if (fdatasync(fd_.Get()) != 0 && error_ == 0) error_ = errno;
}

void ReportFile::Touch() {
  (void)futimens(fd_.Get(), nullptr);
}

}  // namespace overcap
