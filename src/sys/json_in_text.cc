// SPDX-License-Identifier: Apache-2.0
#include "sys/json_in_text.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace overcap {
namespace {

constexpr size_t kMaxQuoted = 100;

// Parsing recurses: deeper than any program of ours prints, and far from the end of the stack.
constexpr int kMaxDepth = 100;

}  // namespace

Result<nlohmann::json> JsonObjectIn(std::string_view output, std::string_view program) {
  const size_t first = output.find('{'), last = output.rfind('}');
  if (first != std::string_view::npos && last != std::string_view::npos && first < last) {
    const auto shallow = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      return depth < kMaxDepth;
    };
    const auto text = output.substr(first, last - first + 1);
    auto json = nlohmann::json::parse(text.begin(), text.end(), shallow, false);
    if (json.is_object()) return json;
  }
  return Fail(ErrorCode::kCorrupt,
              StrCat(program, " printed ", Quoted(Trim(output), kMaxQuoted), " instead of JSON"));
}

}  // namespace overcap
