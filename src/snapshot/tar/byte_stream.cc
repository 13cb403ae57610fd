// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/byte_stream.h"

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "snapshot/file_io.h"
#include "sys/posix_files.h"

namespace overcap {

Result<size_t> FdSource::Read(char* buffer, size_t size) {
  const ssize_t count = ReadSome(fd_, buffer, size);
  if (count < 0) return Fail(ErrnoError(errno, StrCat("cannot read '", name_, "'")));
  bytes_ += count;
  return static_cast<size_t>(count);
}

Result<void> FdSink::Write(std::string_view bytes) {
  if (const int error = WriteAll(fd_, bytes)) {
    return Fail(ErrnoError(error, StrCat("cannot write '", name_, "'")));
  }
  bytes_ += static_cast<int64_t>(bytes.size());
  return {};
}

Result<size_t> TextSource::Read(char* buffer, size_t size) {
  const size_t count = std::min(size, text_.size());
  std::copy_n(text_.data(), count, buffer);
  text_.remove_prefix(count);
  return count;
}

}  // namespace overcap
