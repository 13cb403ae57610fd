// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/folder_names.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>

namespace overcap {
namespace {

constexpr size_t kBuffer = 65536;

bool IsDots(const char* name) {
  return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

}  // namespace

FolderNames::FolderNames() : buffer_(new char[kBuffer]) {}

int FolderNames::List(int fd) {
  bytes_.clear();
  places_.clear();
  names_.clear();
  int error = 0;
  while (true) {
    const ssize_t got = getdents64(fd, buffer_.get(), kBuffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != ENOENT) error = errno;  // ENOENT: the open folder was removed
    if (got <= 0) break;
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer_.get() + at);
      at += entry->d_reclen;
      if (IsDots(entry->d_name)) continue;
      const std::string_view name = entry->d_name;
      places_.push_back({bytes_.size(), static_cast<uint32_t>(name.size()), entry->d_type});
      bytes_.append(name.data(), name.size() + 1);
    }
  }
  names_.reserve(places_.size());
  for (const Place& place : places_) {
    names_.push_back({{bytes_.data() + place.offset, place.length}, place.type});
  }
  std::sort(names_.begin(), names_.end(), [](const Name& a, const Name& b) { return a.text < b.text; });
  return error;
}

}  // namespace overcap
