// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/resume_marker.h"

#include <vector>

#include "base/text.h"

namespace overcap {
namespace {

constexpr std::string_view kFirstLine = "overcap restore 1";

}  // namespace

// The path stands last, as it may hold any byte.
std::string ResumeMarker::Encode() const {
  return StrCat(kFirstLine, "\n", boot_id, "\n", tree.Hex(), "\n", began_ns, "\n", folder);
}

std::optional<ResumeMarker> ResumeMarker::Decode(std::string_view text) {
  std::vector<std::string_view> lines;
  for (int i = 0; i < 4; ++i) {
    const size_t end = text.find('\n');
    if (end == text.npos) return std::nullopt;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  const std::optional<Digest> tree = Digest::FromHex(lines[2]);
  const std::optional<long long> began = ParseInt(lines[3]);
  if (lines[0] != kFirstLine || !tree || !began) return std::nullopt;
  return ResumeMarker{std::string(lines[1]), *tree, std::string(text), *began};
}

std::string ResumeMarkerPath(const std::string& seen_file) {
  return StrCat(seen_file, ".restoring");
}

}  // namespace overcap
