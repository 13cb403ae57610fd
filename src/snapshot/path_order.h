// SPDX-License-Identifier: Apache-2.0
// Relative paths as listings of folders have them: their order, and which are allowed.
#pragma once

#include <algorithm>
#include <string_view>

namespace overcap {

// '/' as 0; all other bytes keep their order, since NUL is in no path.
inline unsigned char PathRank(char c) {
  return c == '/' ? 0 : static_cast<unsigned char>(c);
}

// How many bytes both begin with.
inline size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The order of a tree: bytes, with '/' below every other. A folder is directly followed by all that is in it.
bool PathBefore(std::string_view a, std::string_view b);

// Not empty; no component is empty, "." or ".."; no NUL.
bool PathIsClean(std::string_view path);

// The folder that a path is in: "" for "a".
std::string_view ParentPath(std::string_view path);

}  // namespace overcap
