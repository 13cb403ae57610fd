// SPDX-License-Identifier: Apache-2.0
// What people want to see of a store: one level of it, or sums.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "stores/store.h"

namespace overcap {

struct FolderLine {
  std::string name;         // of a folder: with '/' at its end
  StoredObjectInfo object;  // of a file
  bool folder = false;
};

// What is directly in the store, in the order of names. With `skip` the rest of a long folder is not walked
// through, where a listing can go on anywhere at no cost. How many objects have no key.
Result<int64_t> VisitLevel(const Store& store, bool skip,
                           const std::function<void(const FolderLine&)>& visit);
// Every object.
Result<int64_t> VisitObjects(const Store& store, const std::function<void(const FolderLine&)>& visit);

struct FolderSum {
  int64_t files = 0, bytes = 0;
};
struct FolderSums {
  FolderSum all;
  std::map<std::string, FolderSum> folders;  // directly in the store, with '/' at their ends; "": files
  int64_t left_out = 0;
};
Result<FolderSums> SumUp(const Store& store);

// Removes folders of this machine in which there is nothing but such, `path` itself too. Best effort.
void RemoveEmptyFolders(const std::string& path);

}  // namespace overcap
