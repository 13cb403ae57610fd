// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/folder_view.h"

#include <filesystem>
#include <unordered_set>
#include <vector>

#include "control/transfer/key_stream.h"

namespace overcap {
namespace {

// Behind every name of a folder: the last character that there is.
constexpr std::string_view kLast = "\xf4\x8f\xbf\xbf";

std::string FolderIn(const std::string& key) {
  const size_t slash = key.find('/');
  return slash == std::string::npos ? "" : key.substr(0, slash + 1);
}

}  // namespace

Result<int64_t> VisitLevel(const Store& store, bool skip,
                           const std::function<void(const FolderLine&)>& visit) {
  int64_t left_out = 0;
  std::string folder;
  std::unordered_set<std::string> told;  // a service with an order of its own may come back to a folder
  PagedListing listing(store);
  while (true) {
    OC_TRY(page, listing.Next());
    if (page == nullptr) return left_out;
    left_out += page->left_out;
    for (const StoredObjectInfo& object : page->objects) {
      if (!folder.empty() && object.key.starts_with(folder)) continue;
      folder = FolderIn(object.key);
      if (folder.empty())
        visit({object.key, object, false});
      else if (told.insert(folder).second)
        visit({folder, {}, true});
    }
    // The rest of a folder is of no interest.
    if (skip && !folder.empty() && page->next.starts_with(folder))
      listing.SkipTo(folder + std::string(kLast));
  }
}

Result<int64_t> VisitObjects(const Store& store, const std::function<void(const FolderLine&)>& visit) {
  KeyStream stream(store);
  while (true) {
    OC_TRY(object, stream.Peek());
    if (object == nullptr) return stream.left_out();
    visit({object->key, *object, false});
    stream.Pop();
  }
}

Result<FolderSums> SumUp(const Store& store) {
  FolderSums sums;
  OC_TRY(left_out, VisitObjects(store, [&](const FolderLine& line) {
           FolderSum& in = sums.folders[FolderIn(line.name)];
           for (FolderSum* sum : {&in, &sums.all}) {
             ++sum->files;
             if (__builtin_add_overflow(sum->bytes, line.object.size, &sum->bytes)) sum->bytes = INT64_MAX;
           }
         }));
  sums.left_out = left_out;
  return sums;
}

void RemoveEmptyFolders(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<fs::path> folders = {path};
  for (fs::recursive_directory_iterator at(path, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) folders.push_back(at->path());
  }
  // Those below stand behind those above; remove() leaves what is not empty.
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) fs::remove(*folder, ignored);
}

}  // namespace overcap
