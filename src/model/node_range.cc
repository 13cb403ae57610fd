// SPDX-License-Identifier: Apache-2.0
#include "model/node_range.h"

#include <optional>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int kMostNodes = 1'000'000;

std::optional<int> CountOfNodes(std::string_view text) {
  const auto value = ParseInt(text);
  if (!value || *value < 1 || *value > kMostNodes) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

Result<NodeRange> ParseNodeRange(std::string_view text) {
  const size_t colon = text.find(':');
  const auto bad = [&](std::string_view what) {
    return Fail(ErrorCode::kUsage, StrCat(Quoted(text), " ", what),
                "a number from 1 on, or MIN:MAX for an elastic job, as in 2:8");
  };
  const auto least = CountOfNodes(text.substr(0, colon));
  if (colon == text.npos) {
    if (!least) return bad("is no number of nodes");
    return NodeRange{*least, 0};
  }
  const auto most = CountOfNodes(text.substr(colon + 1));
  if (!least || !most) return bad("is no range of nodes");
  if (*least > *most) return bad("begins behind its end");
  return NodeRange{*least, *most};
}

}  // namespace overcap
