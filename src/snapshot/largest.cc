// SPDX-License-Identifier: Apache-2.0
#include "snapshot/largest.h"

#include <algorithm>
#include <string_view>

namespace overcap {
namespace {

constexpr size_t kCount = 5;

struct Sum {
  std::string_view path;
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t most_files = 0;  // in the folder in it that has the most
  int64_t most_bytes = 0;
};

bool Contains(std::string_view folder, std::string_view path) {
  return path.size() > folder.size() && path.substr(0, folder.size()) == folder && path[folder.size()] == '/';
}

void AddToParent(const Sum& child, Sum* parent) {
  parent->files += child.files;
  parent->bytes += child.bytes;
  parent->most_files = std::max(parent->most_files, child.files);
  parent->most_bytes = std::max(parent->most_bytes, child.bytes);
}

// The sums of all folders, each after those in it. One pass: a folder is followed by its content.
std::vector<Sum> SumFolders(const std::vector<CodeEntry>& entries) {
  std::vector<Sum> sums;
  std::vector<Sum> open;
  const auto close = [&] {
    const Sum sum = open.back();
    open.pop_back();
    if (!open.empty()) AddToParent(sum, &open.back());
    sums.push_back(sum);
  };
  for (const CodeEntry& entry : entries) {
    while (!open.empty() && !Contains(open.back().path, entry.path)) close();
    if (entry.kind == EntryKind::kFolder) {
      open.push_back(Sum{entry.path});
    } else if (!open.empty()) {
      ++open.back().files;
      open.back().bytes += entry.size;
    }
  }
  while (!open.empty()) close();
  return sums;
}

std::vector<PathSize> Top(std::vector<Sum> sums, int64_t Sum::*amount, int64_t Sum::*most) {
  std::erase_if(sums, [&](const Sum& sum) { return sum.*amount == 0 || sum.*most * 5 > sum.*amount * 4; });
  std::sort(sums.begin(), sums.end(), [&](const Sum& a, const Sum& b) {
    return a.*amount != b.*amount ? a.*amount > b.*amount : a.path < b.path;
  });
  std::vector<PathSize> top;
  for (const Sum& sum : sums) {
    if (top.size() == kCount) break;
    const bool inside = std::any_of(top.begin(), top.end(),
                                    [&](const PathSize& named) { return Contains(named.path, sum.path); });
    if (!inside) top.push_back({std::string(sum.path), sum.files, sum.bytes});
  }
  return top;
}

std::vector<PathSize> TopFiles(const std::vector<CodeEntry>& entries) {
  std::vector<const CodeEntry*> files;
  const auto larger = [](const CodeEntry* a, const CodeEntry* b) {
    return a->size != b->size ? a->size > b->size : a->path < b->path;
  };
  for (const CodeEntry& entry : entries) {
    if (entry.kind == EntryKind::kFolder) continue;
    if (files.size() == kCount && !larger(&entry, files.back())) continue;
    if (files.size() == kCount) files.pop_back();
    files.insert(std::upper_bound(files.begin(), files.end(), &entry, larger), &entry);
  }
  std::vector<PathSize> top;
  for (const CodeEntry* file : files) top.push_back({file->path, 1, file->size});
  return top;
}

}  // namespace

Largest FindLargest(const std::vector<CodeEntry>& entries) {
  const std::vector<Sum> sums = SumFolders(entries);
  return Largest{TopFiles(entries), Top(sums, &Sum::bytes, &Sum::most_bytes),
                 Top(sums, &Sum::files, &Sum::most_files)};
}

}  // namespace overcap
