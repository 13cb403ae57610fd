// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/rclone_cache.h"

#include <filesystem>

#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kMostNote = 1 << 20;

}  // namespace

bool IsDirtyNote(std::string_view json) {
  constexpr std::string_view kName = "\"Dirty\"", kBlank = " \t\r\n";
  size_t at = json.find(kName);
  if (at == std::string_view::npos) return false;
  at = json.find_first_not_of(kBlank, at + kName.size());
  if (at == std::string_view::npos || json[at] != ':') return false;
  at = json.find_first_not_of(kBlank, at + 1);
  return at != std::string_view::npos && json.substr(at).starts_with("true");
}

int64_t CountDirty(const std::string& cache) {
  namespace fs = std::filesystem;
  PosixFiles files;
  int64_t count = 0;
  std::error_code error;
  fs::recursive_directory_iterator at(cache + "/vfsMeta", error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code of_entry;
    if (!at->is_regular_file(of_entry)) continue;
    const auto note = files.ReadRange(at->path().string(), 0, kMostNote);
    if (note && IsDirtyNote(*note)) ++count;
  }
  return count;
}

}  // namespace overcap
