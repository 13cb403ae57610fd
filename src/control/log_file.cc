// SPDX-License-Identifier: Apache-2.0
#include "control/log_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <vector>

#include "base/text.h"
#include "sys/fresh_open.h"
#include "sys/log_bound.h"

namespace overcap {
namespace {

constexpr int64_t kBlock = 64 << 10;

// 0 or an errno; `bytes` are [offset, offset+limit) of the file, fewer at its end.
int ReadAt(const Fd& fd, int64_t offset, size_t limit, std::string* bytes) {
  bytes->resize(limit);
  ssize_t count;
  do {
    count = pread(fd.Get(), bytes->data(), limit, offset);
  } while (count < 0 && errno == EINTR);
  bytes->resize(static_cast<size_t>(std::max<ssize_t>(0, count)));
  return count < 0 ? errno : 0;
}

tl::unexpected<Error> CannotRead(int error, const std::string& path) {
  return Fail(ErrnoError(error, StrCat("cannot read log '", path, "'")));
}

}  // namespace

Result<bool> LogReader::Open() {
  if (fd_) return true;
  if (segments_ && looked_) return false;  // begun in one place, it goes on there
  looked_ = true;
  fd_ = OpenFresh(AT_FDCWD, path_, O_RDONLY | O_NONBLOCK);  // a pipe in its place keeps nobody waiting
  struct stat info {};
  // An empty file in its place says only that there is one.
  if (fd_ && segments_ && fstat(fd_.Get(), &info) == 0 && info.st_size == 0) fd_.Reset();
  if (fd_) {
    cached_ = HostsKeepCaches(fd_.Get());
    return true;
  }
  if (errno == ENOENT || segments_) return false;
  return Fail(ErrnoError(errno, StrCat("cannot open log '", path_, "'")));
}

Result<void> LogReader::SeekToTail(int64_t lines, int64_t max_bytes) {
  OC_TRY(there, Open());
  if (!there && segments_) return segments_->SeekToTail(lines, max_bytes);
  struct stat info {};
  if (!there || fstat(fd_.Get(), &info) != 0) return {};
  const int64_t size = info.st_size;
  const int64_t first = std::max<int64_t>(0, size - max_bytes);
  std::vector<FileStretch> holes = HolesOf(fd_.Get());
  int64_t begin = size;
  while (lines > 0 && begin > first) {
    while (!holes.empty() && holes.back().begin >= begin) holes.pop_back();
    const FileStretch hole = holes.empty() ? FileStretch{} : holes.back();
    if (hole.end >= begin) {
      begin = hole.begin;
      continue;
    }
    const int64_t from = std::max({first, begin - kBlock, hole.end});
    std::string block;
    if (const int error = ReadAt(fd_, from, static_cast<size_t>(begin - from), &block); error != 0)
      return CannotRead(error, path_);
    for (auto i = static_cast<int64_t>(block.size()) - 1; i >= 0; --i) {
      // The newline at the very end belongs to the last line.
      if (block[static_cast<size_t>(i)] != '\n' || from + i == size - 1 || --lines > 0) continue;
      offset_ = from + i + 1;
      return {};
    }
    begin = from;
  }
  offset_ = begin;
  return {};
}

// In the place of what a log has lost stands a line that says how much that was.
int LogReader::ReadHere(size_t limit, std::string* bytes) {
  LogPart part;
  const int64_t from = offset_;
  const int error = ReadLogPart(fd_.Get(), from, limit, &part);
  if (error != 0) return error;
  offset_ = part.next;
  *bytes = part.Marker(from);
  if (!bytes->empty() && !at_line_begin_) bytes->insert(0, 1, '\n');
  *bytes += part.bytes;
  if (!bytes->empty()) at_line_begin_ = bytes->back() == '\n';
  return 0;
}

Result<std::string> LogReader::Read(size_t limit) {
  OC_TRY(there, Open());
  if (!there && segments_) return segments_->Read(limit);
  if (!there) return std::string();
  std::string bytes;
  int error = ReadHere(limit, &bytes);
  // The last words of a job would be lost otherwise.
  if (cached_ && !segments_ && (error == ESTALE || bytes.empty())) {
    fd_.Reset();
    if (error == ESTALE) AskAnew(AT_FDCWD, path_);
    OC_TRY(still, Open());
    if (!still) return std::string();
    error = ReadHere(limit, &bytes);
  }
  if (error != 0) return CannotRead(error, path_);
  return bytes;
}

std::string TailText(const std::string& path, int64_t lines, int64_t max_bytes) {
  return TailText(LogReader(path), lines, max_bytes);
}

std::string TailText(LogReader reader, int64_t lines, int64_t max_bytes) {
  if (!reader.SeekToTail(lines, max_bytes)) return {};
  return reader.Read(static_cast<size_t>(max_bytes)).value_or("");
}

}  // namespace overcap
