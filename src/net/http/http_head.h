// SPDX-License-Identifier: Apache-2.0
// Reads what stands before the body of an answer; strict, because it comes from others. Pure.
#pragma once

#include "net/http/http_message.h"

namespace overcap {

constexpr size_t kLargestHttpHead = 64 * 1024;
constexpr size_t kMostHttpHeaders = 200;

// How many bytes the head takes, its empty line included; 0: it is not all there yet. An error says what is
// wrong with it, or that it grows past kLargestHttpHead. `out` is filled only when it is all there.
Result<size_t> ParseHttpHead(std::string_view bytes, HttpResponse* out);

// How the end of the body is known.
struct HttpFraming {
  enum class Kind { kLength, kChunked, kUntilClose };
  Kind kind = Kind::kLength;
  int64_t length = 0;
  bool keep_alive = true;  // the connection can be used again behind the body
};
Result<HttpFraming> FramingOf(std::string_view method, const HttpResponse& head);

}  // namespace overcap
