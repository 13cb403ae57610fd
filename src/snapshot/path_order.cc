// SPDX-License-Identifier: Apache-2.0
#include "snapshot/path_order.h"

namespace overcap {

bool PathBefore(std::string_view a, std::string_view b) {
  const size_t common = CommonPrefix(a, b);
  if (common == a.size() || common == b.size()) return common == a.size() && common != b.size();
  return PathRank(a[common]) < PathRank(b[common]);
}

bool PathIsClean(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    if (name.empty() || name == "." || name == "..") return false;
    if (slash == path.size()) return true;
    path.remove_prefix(slash + 1);
  }
}

std::string_view ParentPath(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace overcap
