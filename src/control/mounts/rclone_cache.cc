// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/rclone_cache.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kMostNote = 256 << 20;  // of a file of which many pieces were read

}  // namespace

bool IsCleanNote(std::string_view json) {
  constexpr std::string_view kName = "\"Dirty\"", kBlank = " \t\r\n";
  size_t at = json.find(kName);
  if (at == std::string_view::npos || !Trim(json).ends_with('}')) return false;
  at = json.find_first_not_of(kBlank, at + kName.size());
  if (at == std::string_view::npos || json[at] != ':') return false;
  at = json.find_first_not_of(kBlank, at + 1);
  return at != std::string_view::npos && json.substr(at).starts_with("false");
}

int64_t CountDirty(const std::string& cache) {
  namespace fs = std::filesystem;
  PosixFiles files;
  int64_t count = 0;
  std::error_code error;
  fs::recursive_directory_iterator at(cache + "/vfsMeta", error);
  if (error == std::errc::no_such_file_or_directory) return 0;
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code of_entry;
    if (!at->is_regular_file(of_entry)) continue;
    const auto note = files.ReadRange(at->path().string(), 0, kMostNote);
    const bool gone = !note && note.error().code == ErrorCode::kNotFound;
    if (!gone && !(note && IsCleanNote(*note))) ++count;
  }
  return error ? std::max<int64_t>(count, 1) : count;  // what was not seen may be dirty
}

}  // namespace overcap
