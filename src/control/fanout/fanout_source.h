// SPDX-License-Identifier: Apache-2.0
// The folder that fans out: its tree, the objects that describe it, and its chunks.
#pragma once

#include <atomic>
#include <functional>
#include <map>
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
  FolderChunks chunks;                  // opened; of a folder
  // Of what nodes have pulled, in the place of `chunks`.
  std::function<bool(const fanout::WantedChunk& chunk, char* out)> read;
  int64_t files = 0, bytes = 0;
  int64_t read_bytes = 0;  // that were new to the head
  std::vector<BackupProblem> problems;
  int64_t unread = 0;
  std::map<int, fanout::Known> pulled;  // nodes that have all of it already, from a store

  // Whether the chunk is to be had: into `out`, whatever its bytes are by now. From any thread.
  bool Read(const fanout::WantedChunk& chunk, char* out) const {
    return read ? read(chunk, out) : chunks.Read(chunk, out);
  }
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

// The same for a folder that the caller has for itself; what is known of it stays in `state`, which exists.
Result<FanoutSource> DescribeFolder(const SourceRequest& request, const std::string& state);

// <root>/fanout/<id>: what the head keeps of that source, named by any text that stands for it.
std::string FanoutStateOf(const std::string& root, const std::string& source);

}  // namespace overcap
