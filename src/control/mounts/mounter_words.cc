// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/mounter_words.h"

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kMostBytes = 300;

// rclone, blobfuse2 and others with Go's or Rust's flag parsers
bool BeginsUsage(std::string_view line) {
  return line.starts_with("Usage:") || line == "NAME:";
}

}  // namespace

std::string MounterLastWords(std::string_view text) {
  std::string last;
  for (const std::string& raw : Split(text, '\n')) {
    const std::string_view line = Trim(raw);
    if (BeginsUsage(line)) break;
    if (line.empty()) continue;
    last = line.starts_with("caused by:") && !last.empty() ? StrCat(last, ", ", line) : std::string(line);
  }
  return ToUtf8(last.substr(0, kMostBytes));
}

}  // namespace overcap
