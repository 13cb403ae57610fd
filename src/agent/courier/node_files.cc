// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/node_files.h"

#include <algorithm>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::string_view kEpoch = "attempt-";

std::vector<std::string> NamesIn(const std::string& folder) {
  return PosixFiles().List(folder).value_or(std::vector<std::string>());
}

// -1: it is no folder of an epoch.
int64_t EpochOf(std::string_view name) {
  return name.starts_with(kEpoch) ? ParseInt(name.substr(kEpoch.size())).value_or(-1) : -1;
}

}  // namespace

std::vector<NodeFile> NodeFilesIn(const std::string& job_dir, const std::string& folder) {
  const std::string path = StrCat(job_dir, "/", folder);
  std::vector<NodeFile> files;
  int64_t newest = -1;
  const std::vector<std::string> names = NamesIn(path);
  for (const std::string& name : names) {
    newest = std::max(newest, EpochOf(name));
    if (name.ends_with(".jsonl")) files.push_back({StrCat(folder, "/", name), false});
  }
  for (const std::string& epoch : names) {
    if (EpochOf(epoch) < 0) continue;
    for (const std::string& name : NamesIn(StrCat(path, "/", epoch))) {
      if (name.ends_with(".log") || name == "stacks.txt")
        files.push_back({StrCat(folder, "/", epoch, "/", name), EpochOf(epoch) < newest});
    }
  }
  return files;
}

}  // namespace overcap
