// SPDX-License-Identifier: Apache-2.0
// Compares two folders byte by byte and attribute by attribute; shares no code with what it judges.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace overcap {

struct TreeComparison {
  bool owners = true;
  bool times = true;                          // of files, folders and links, to the nanosecond
  std::set<std::string> skip = {".overcap"};  // names in the two folders themselves that are not looked at
  size_t most = 30;                           // lines
};

// One line per difference, "path: what"; empty when the folders are equal: names, types, modes, owners,
// times, contents, holes, links, which names are one file, extended attributes and ACLs. Paths may be longer
// than PATH_MAX. What cannot be read is a difference.
std::vector<std::string> CompareTrees(const std::string& left, const std::string& right,
                                      const TreeComparison& how = {});

}  // namespace overcap
