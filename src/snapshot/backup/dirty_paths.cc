// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/dirty_paths.h"

namespace overcap {

DirtyPaths::DirtyPaths(const std::vector<std::string>& paths) {
  for (std::string_view path : paths) {
    while (path.starts_with("./")) path.remove_prefix(2);
    while (path.ends_with('/')) path.remove_suffix(1);
    if (path == ".") path = {};
    const size_t cut = path.rfind('/');
    listed_.emplace(path);
    listed_.emplace(cut == std::string_view::npos ? std::string_view() : path.substr(0, cut));
  }
}

}  // namespace overcap
