// SPDX-License-Identifier: Apache-2.0
// The folder that fans out: its tree, the objects that describe it, and its chunks.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/fanout/fanout_messages.h"
#include "control/fanout/folder_chunks.h"
#include "snapshot/backup/backup.h"

namespace overcap {

struct FanoutSource {
  Digest tree;
  std::vector<fanout::Object> objects;  // as `O` frames bring them
  FolderChunks chunks;                  // opened
  int64_t files = 0, bytes = 0;
  int64_t read_bytes = 0;  // that were new to the head
  std::vector<BackupProblem> problems;
  int64_t unread = 0;
};

struct SourceRequest {
  std::string folder;  // absolute
  std::string root;    // <root>: what is known of the folder stays in its fanout/
  std::string host, user;
  std::function<void(const BackupProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;
};

// kNotFound for a folder that is none; kUnavailable while another fan-out reads the same folder.
Result<FanoutSource> ReadFanoutSource(const SourceRequest& request);

// <root>/fanout/<id>: what the head keeps of that source, named by any text that stands for it.
std::string FanoutStateOf(const std::string& root, const std::string& source);

}  // namespace overcap
