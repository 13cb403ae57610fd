// SPDX-License-Identifier: Apache-2.0
// What stands beside a file that arrives in parts, so that who goes on knows which are there
// (docs/formats/stores.md, ".overcap-part files"). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

// ".overcap-part-<16 digits>": the file; with ".done" behind it: its journal.
std::string PartialName(std::string_view identity);

struct PartJournal {
  int64_t size = 0, part_size = 1;

  struct Line {
    int64_t part = 0;
    std::string crc;  // 8 hex digits
  };
  std::string Head() const;
  static std::string CrcText(std::string_view bytes);
  static std::string LineOf(int64_t part, std::string_view bytes);
  // More is not read of one.
  int64_t MostBytes() const;
  // The lines as far as they are ones; `good` is how many bytes of the text these and the head have: 0 when
  // it is the journal of something else.
  std::vector<Line> Parse(std::string_view text, size_t* good) const;
  int64_t BytesOf(int64_t part) const;
};

}  // namespace overcap
