// SPDX-License-Identifier: Apache-2.0
// Absolute paths in a Python environment that was moved (docs/formats/fanout.md, "Paths in environments").
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace overcap {

struct PathChange {
  std::string from, to;  // absolute, without '/' at the end
};

// `text` with every `from` that stands there as a whole replaced; of several that fit the longest counts.
std::string WithPathsChanged(std::string_view text, const std::vector<PathChange>& changes);

// A script of bin/: only the lines that say which program runs it. What is no script comes back as it is.
std::string WithInterpreterChanged(std::string_view script, const std::vector<PathChange>& changes);

// Where the environment says that it is: VIRTUAL_ENV in bin/activate; "" when it does not.
std::string EnvironmentPathIn(std::string_view activate);

}  // namespace overcap
