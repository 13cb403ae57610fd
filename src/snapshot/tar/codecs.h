// SPDX-License-Identifier: Apache-2.0
// The three compressions of tars as streams; tar_codec.h chooses.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "snapshot/tar/byte_stream.h"

namespace overcap {

Result<std::unique_ptr<ByteSink>> MakeGzipSink(ByteSink& next);
Result<std::unique_ptr<ByteSink>> MakeLz4Sink(ByteSink& next);
Result<std::unique_ptr<ByteSink>> MakeZstdSink(ByteSink& next, int threads);

Result<std::unique_ptr<ByteSource>> MakeGzipSource(ByteSource& source, const std::string& name);
Result<std::unique_ptr<ByteSource>> MakeLz4Source(ByteSource& source, const std::string& name);
Result<std::unique_ptr<ByteSource>> MakeZstdSource(ByteSource& source, const std::string& name);

// Holds compressed bytes between a source and a decoder.
class CodecInput {
 public:
  explicit CodecInput(ByteSource& source) : source_(source), buffer_(256 << 10, '\0') {}
  // More when nothing is left; false: the source has ended.
  Result<bool> Refill();
  const char* data() const { return buffer_.data() + begin_; }
  size_t size() const { return end_ - begin_; }
  void Use(size_t count) { begin_ += count; }

 private:
  ByteSource& source_;
  std::string buffer_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace overcap
