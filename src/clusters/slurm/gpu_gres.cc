// SPDX-License-Identifier: Apache-2.0
// ParseGpuGres() of sinfo_text.h.
#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/sinfo_text.h"

namespace overcap {
namespace {

constexpr int kMostGpus = 1'000'000;
constexpr int kHighestIndex = 4095;

struct GresEntry {
  std::string type;
  int count = 0;
  std::string_view detail;  // between the brackets
};

// Up to the next comma outside brackets.
std::string_view TakeEntryText(std::string_view* text) {
  int depth = 0;
  size_t end = 0;
  for (; end < text->size(); ++end) {
    const char c = (*text)[end];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth <= 0) break;
  }
  const std::string_view entry = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return entry;
}

int ReadCount(std::string_view text) {
  const auto count = ParseInt(text);
  return count && *count >= 0 && *count <= kMostGpus ? static_cast<int>(*count) : 0;
}

// "gpu:4", "gpu:a40:4(S:0-1)", "gpu:a40:no_consume:4", "gpu:(null):0(IDX:N/A)".
bool ReadGpuEntry(std::string_view text, GresEntry* entry) {
  if (text.substr(0, 4) != "gpu:") return false;
  text.remove_prefix(4);
  constexpr std::string_view kNoType = "(null):";
  if (text.substr(0, kNoType.size()) == kNoType) text.remove_prefix(kNoType.size());
  const size_t bracket = std::min(text.find('('), text.size());
  entry->detail = text.substr(std::min(bracket + 1, text.size()));
  if (!entry->detail.empty() && entry->detail.back() == ')') entry->detail.remove_suffix(1);
  text = text.substr(0, bracket);
  const size_t last = text.rfind(':');
  entry->count = ReadCount(last == std::string_view::npos ? text : text.substr(last + 1));
  entry->type = last == std::string_view::npos ? "" : text.substr(0, text.find(':'));
  return true;
}

// "IDX:0-1,3".
std::vector<int> ReadIndices(std::string_view detail) {
  std::vector<int> indices;
  if (detail.substr(0, 4) != "IDX:") return indices;
  for (const std::string& part : Split(detail.substr(4), ',')) {
    const size_t dash = part.find('-');
    const auto first = ParseInt(std::string_view(part).substr(0, dash));
    const auto last = dash == std::string::npos ? first : ParseInt(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first < 0 || *last > kHighestIndex) continue;
    for (long long index = *first; index <= *last && indices.size() <= kHighestIndex; ++index) {
      indices.push_back(static_cast<int>(index));
    }
  }
  return indices;
}

}  // namespace

std::vector<SlurmNodeGpus> ParseGpuGres(std::string_view gres, std::string_view gres_used) {
  std::vector<SlurmNodeGpus> gpus;
  const auto of_type = [&](const std::string& type) -> SlurmNodeGpus& {
    const auto found = std::find_if(gpus.begin(), gpus.end(),
                                    [&](const SlurmNodeGpus& known) { return known.type == type; });
    return found != gpus.end() ? *found : gpus.emplace_back(SlurmNodeGpus{type, 0, 0});
  };
  GresEntry entry;
  while (!gres.empty()) {
    if (!ReadGpuEntry(TakeEntryText(&gres), &entry)) continue;
    SlurmNodeGpus& known = of_type(entry.type);
    known.total = std::min(known.total + entry.count, kMostGpus);
  }
  while (!gres_used.empty()) {
    if (!ReadGpuEntry(TakeEntryText(&gres_used), &entry)) continue;
    SlurmNodeGpus& known = of_type(entry.type);
    known.used = std::min(known.used + entry.count, kMostGpus);
    for (int index : ReadIndices(entry.detail)) known.used_indices.push_back(index);
  }
  return gpus;
}

}  // namespace overcap
