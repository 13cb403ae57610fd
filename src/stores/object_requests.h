// SPDX-License-Identifier: Apache-2.0
// What requests to object stores over HTTP have in common. Pure, but for NewPutMark.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

bool IsUtf8(std::string_view text);

int64_t SizeOfPieces(std::span<const std::string_view> pieces);
// What is in [offset, offset + size) of them.
std::vector<std::string_view> SliceOfPieces(std::span<const std::string_view> pieces, int64_t offset,
                                            int64_t size);

// "bytes=OFFSET-LAST"; a limit of 0 asks for one byte, because none cannot be asked for.
std::string ByteRange(int64_t offset, int64_t limit);

// The text of an ETag.
std::string_view WithoutQuotes(std::string_view etag);

// `text` when it is a word of `a-z A-Z 0-9 . _ -` (as codes of errors are), else "".
std::string_view PlainWord(std::string_view text);

// What a put is known by again: 32 random hex digits.
std::string NewPutMark();

}  // namespace overcap
