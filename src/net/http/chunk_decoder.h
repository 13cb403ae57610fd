// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace overcap {

// Takes a body of `Transfer-Encoding: chunked` apart, as its bytes come. Pure.
class ChunkDecoder {
 public:
  // Takes bytes from the front of `bytes` up to the end of the next run of data (which is returned, and
  // points into `bytes`) or until there are no more. Nothing is taken behind the end of the body.
  Result<std::string_view> Next(std::string_view* bytes);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State { kSize, kExtension, kSizeLf, kData, kDataCr, kDataLf, kTrailer, kTrailerLf, kDone };
  Result<void> TakeByte(char byte);
  Result<void> TakeSizeByte(char byte);

  State state_ = State::kSize;
  int64_t left_ = 0;               // of the chunk
  int digits_ = 0;                 // of its size
  int line_ = 0;                   // bytes of this trailer line
  int overhead_left_ = 64 * 1024;  // extensions and trailers in all; refilled by data
};

}  // namespace overcap
