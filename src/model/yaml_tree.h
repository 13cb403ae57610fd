// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace overcap {

// One YAML document as a plain tree. Keys stand in their order, also when one stands there twice.
struct YamlTree {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 1;
  std::string text;             // of a scalar
  std::vector<YamlTree> items;  // of a list; of a map: key, value, key, value, ...
};

// kUsage "FILE:LINE: ..." for what is no YAML, is nested more than 8 deep, uses aliases (so that no small
// file can stand for a huge tree) or holds more than one document. Never throws.
Result<YamlTree> ParseYaml(std::string_view text, const std::string& file);

}  // namespace overcap
