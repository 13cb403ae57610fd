// SPDX-License-Identifier: Apache-2.0
#include "stores/part_journal.h"

#include <algorithm>
#include <cstdio>

#include "base/crc32c.h"
#include "base/text.h"
#include "net/http/digests.h"
#include "stores/store.h"

namespace overcap {

std::string PartialName(std::string_view identity) {
  return StrCat(kPartialBegin, HexOf(Sha256OfText(identity)).substr(0, 16));
}

std::string PartJournal::Head() const {
  return StrCat("overcap part 1 ", size, " ", part_size, "\n");
}

std::string PartJournal::CrcText(std::string_view bytes) {
  char text[9];
  snprintf(text, sizeof text, "%08x", Crc32c(bytes));
  return text;
}

std::string PartJournal::LineOf(int64_t part, std::string_view bytes) {
  return StrCat(part, " ", CrcText(bytes), "\n");
}

int64_t PartJournal::MostBytes() const {
  return (PartCount(size, part_size) + 2) * 32 + 64;
}

int64_t PartJournal::BytesOf(int64_t part) const {
  return std::min(part_size, size - part * part_size);
}

std::vector<PartJournal::Line> PartJournal::Parse(std::string_view text, size_t* good) const {
  *good = 0;
  std::vector<Line> lines;
  const std::string head = Head();
  if (!text.starts_with(head)) return lines;
  *good = head.size();
  for (size_t end = text.find('\n', *good); end != text.npos; end = text.find('\n', *good)) {
    const std::string_view line = text.substr(*good, end - *good);
    const size_t blank = std::min(line.find(' '), line.size());
    const auto part = ParseInt(line.substr(0, blank));
    if (blank == line.size() || !part || *part < 0 || *part >= PartCount(size, part_size)) break;
    lines.push_back({*part, std::string(line.substr(blank + 1))});
    *good = end + 1;
  }
  return lines;
}

}  // namespace overcap
