// SPDX-License-Identifier: Apache-2.0
#include "daemon/foreign_folders.h"

#include "base/text.h"

namespace overcap {
namespace {

std::vector<std::string> NamesIn(const Files& files, const std::string& folder) {
  return files.List(folder).value_or(std::vector<std::string>());
}

}  // namespace

ForeignFolders::ForeignFolders(const Files& files, std::string root) : files_(files), root_(std::move(root)) {
  for (const std::string& cluster : NamesIn(files_, root_ + "/clusters")) {
    for (std::string& id : NamesIn(files_, StrCat(root_, "/clusters/", cluster, "/open")))
      open_.insert(std::move(id));
  }
}

bool ForeignFolders::Has(const std::string& id) const {
  if (open_.contains(id)) return true;
  const std::string folder = StrCat(root_, "/jobs/", id);
  for (const std::string_view file : {"/script.sh", "/handle.json", "/ended.json"}) {
    if (files_.Exists(StrCat(folder, file))) return true;
  }
  return false;
}

std::vector<std::string> ForeignFolders::OwnIds() const {
  std::vector<std::string> ids = NamesIn(files_, root_ + "/jobs");
  std::erase_if(ids, [&](const std::string& id) { return Has(id); });
  return ids;
}

}  // namespace overcap
