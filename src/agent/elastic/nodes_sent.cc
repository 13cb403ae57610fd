// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/nodes_sent.h"

#include <set>

#include "base/text.h"
#include "model/group_event.h"

namespace overcap {
namespace {

constexpr std::string_view kSent = "overcap-sent ";

}  // namespace

std::string SentLine(int node) {
  return StrCat(kSent, node, "\n");
}

int CountSent(std::string_view launcher_log) {
  std::set<int64_t> nodes;
  for (const std::string& line : Split(launcher_log, '\n')) {
    if (!line.starts_with(kSent)) continue;
    const auto node = ParseInt(std::string_view(line).substr(kSent.size()));
    if (node && *node > 0) nodes.insert(*node);
  }
  return static_cast<int>(nodes.size());
}

int LastGroupSize(std::string_view events) {
  int size = 0;
  for (const std::string& line : Split(events, '\n')) {
    const auto event = ParseGroupEvent(line);
    if (event && event->event == "epoch") size = event->group_size;
  }
  return size;
}

}  // namespace overcap
