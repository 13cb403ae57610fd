// SPDX-License-Identifier: Apache-2.0
// Bytes that come and go in order, once: what tar files are read from and written to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // At least one byte, at most `size`; 0 only at the end.
  virtual Result<size_t> Read(char* buffer, size_t size) = 0;
};

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Result<void> Write(std::string_view bytes) = 0;
  // Once, after the last Write: everything has been handed on. Without it the output is not whole.
  virtual Result<void> Finish() = 0;
};

// An open file, pipe or socket; `name` is for messages. The descriptor stays the caller's.
class FdSource : public ByteSource {
 public:
  FdSource(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  Result<size_t> Read(char* buffer, size_t size) override;
  int64_t bytes() const { return bytes_; }  // read so far

 private:
  int fd_;
  std::string name_;
  int64_t bytes_ = 0;
};

class FdSink : public ByteSink {
 public:
  FdSink(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  Result<void> Write(std::string_view bytes) override;
  Result<void> Finish() override { return {}; }
  int64_t bytes() const { return bytes_; }  // written so far

 private:
  int fd_;
  std::string name_;
  int64_t bytes_ = 0;
};

// Memory, for tests and small things.
class TextSource : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : text_(text) {}  // stays the caller's
  Result<size_t> Read(char* buffer, size_t size) override;

 private:
  std::string_view text_;
};

class TextSink : public ByteSink {
 public:
  Result<void> Write(std::string_view bytes) override { return text.append(bytes), Result<void>(); }
  Result<void> Finish() override { return {}; }
  std::string text;
};

}  // namespace overcap
