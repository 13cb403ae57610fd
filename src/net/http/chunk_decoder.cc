// SPDX-License-Identifier: Apache-2.0
#include "net/http/chunk_decoder.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int kMostDigits = 15;
constexpr int kMostOverhead = 64 * 1024;

tl::unexpected<Error> Odd(std::string_view what) {
  return Fail(ErrorCode::kUnavailable, StrCat("the answer is not HTTP: ", what));
}

int HexValue(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

Result<std::string_view> ChunkDecoder::Next(std::string_view* bytes) {
  while (!bytes->empty() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const std::string_view data =
          bytes->substr(0, static_cast<size_t>(std::min<int64_t>(left_, INT64_MAX)));
      bytes->remove_prefix(data.size());
      left_ -= static_cast<int64_t>(data.size());
      overhead_left_ = kMostOverhead;
      if (left_ == 0) state_ = State::kDataCr;
      return data;
    }
    const char byte = bytes->front();
    bytes->remove_prefix(1);
    if (--overhead_left_ < 0) return Odd("there is too much between its chunks");
    OC_TRY_VOID(TakeByte(byte));
  }
  return std::string_view();
}

Result<void> ChunkDecoder::TakeSizeByte(char byte) {
  if (const int value = HexValue(byte); value >= 0) {
    if (++digits_ > kMostDigits) return Odd("a chunk is too large");
    left_ = left_ * 16 + value;
    return {};
  }
  if (digits_ == 0) return Odd("a chunk has no size");
  if (byte == '\r') {
    state_ = State::kSizeLf;
  } else if (byte == ';' || byte == ' ' || byte == '\t') {
    state_ = State::kExtension;
  } else {
    return Odd("the size of a chunk is no number");
  }
  return {};
}

Result<void> ChunkDecoder::TakeByte(char byte) {
  switch (state_) {
    case State::kSize:
      return TakeSizeByte(byte);
    case State::kExtension:
      if (byte == '\n') return Odd("a line of a chunk ends oddly");
      if (byte == '\r') state_ = State::kSizeLf;
      return {};
    case State::kSizeLf:
      if (byte != '\n') return Odd("a line of a chunk ends oddly");
      state_ = left_ > 0 ? State::kData : State::kTrailer;
      digits_ = 0, line_ = 0;
      return {};
    case State::kDataCr:
      if (byte != '\r') return Odd("a chunk is longer than its size");
      state_ = State::kDataLf;
      return {};
    case State::kDataLf:
      if (byte != '\n') return Odd("a chunk is longer than its size");
      state_ = State::kSize;
      return {};
    case State::kTrailer:
      if (byte == '\n') return Odd("a line behind the chunks ends oddly");
      if (byte == '\r')
        state_ = State::kTrailerLf;
      else
        ++line_;
      return {};
    case State::kTrailerLf:
      if (byte != '\n') return Odd("a line behind the chunks ends oddly");
      state_ = line_ == 0 ? State::kDone : State::kTrailer;
      line_ = 0;
      return {};
    default:
      return {};
  }
}

}  // namespace overcap
