// SPDX-License-Identifier: Apache-2.0
// Tells what changes below a folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

struct FolderNews {
  bool changed = false;              // something did, at least
  bool lost = false;                 // more than could be told: everything may have changed
  std::vector<std::string> folders;  // relative paths ("" is the folder itself) in which something did
  std::vector<std::string> deep;     // folders that are new or were moved: all below them, too
};

// One of several ways. After an error, or when it ends to be complete, the owner drops it and looks for
// itself.
class FolderWatch {
 public:
  virtual ~FolderWatch() = default;
  virtual std::string_view Kind() const = 0;  // "inotify", "fanotify"
  virtual int PollFd() const = 0;             // readable when there is news
  // What was told since the last call, without waiting. kUnavailable: not every change is told any more (no
  // watches are left, the folder is gone); the message says why.
  virtual Result<FolderNews> Take() = 0;
};

// True: nothing of it matters. `path` is relative to the folder.
using WatchIgnores = std::function<bool(std::string_view path, bool is_folder)>;

// All below `folder` is watched when it returns. inotify, which hears of nothing else; where it has not
// enough watches fanotify, which hears of all of the file system and needs rights that few have. kUnavailable
// when neither can tell everything, with the reason.
Result<std::unique_ptr<FolderWatch>> WatchFolder(const std::string& folder, WatchIgnores ignores);

// Each by itself, for tests.
Result<std::unique_ptr<FolderWatch>> WatchByInotify(const std::string& folder, WatchIgnores ignores);
Result<std::unique_ptr<FolderWatch>> WatchByFanotify(const std::string& folder, WatchIgnores ignores);

}  // namespace overcap
