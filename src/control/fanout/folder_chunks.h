// SPDX-License-Identifier: Apache-2.0
// Which chunk is where in a folder that a tree describes: what serves chunks without a copy of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "control/fanout/fanout_messages.h"
#include "snapshot/restore/wanted_tree.h"
#include "sys/fd.h"

namespace overcap {

class FolderChunks {
 public:
  struct Spot {
    uint32_t file = 0;
    uint32_t size = 0;
    int64_t offset = 0;
  };

  FolderChunks() = default;
  // Errors are those of the tree; the folder is only looked at when chunks are read.
  static Result<FolderChunks> Of(const WantedTree& tree, const GetMeta& get, const std::string& folder);
  // The form in which a node keeps it (docs/formats/fanout.md). Decode: kCorrupt for anything else.
  std::string Encode() const;
  static Result<FolderChunks> Decode(std::string_view bytes, const std::string& folder);

  // kNotFound, kDenied when the folder cannot be opened. Before that nothing can be read.
  Result<void> OpenFolder();

  // From any thread. Whether so many bytes are there, whatever they are by now.
  bool Read(const fanout::WantedChunk& chunk, char* out) const;
  // The file that has it, and where; invalid when it is not there.
  Fd Open(const fanout::WantedChunk& chunk, int64_t* offset) const;
  bool Has(const Digest& id) const { return spots_.contains(id); }
  // From now on this chunk is all of another file of the folder.
  void Move(const Digest& id, const std::string& path);
  const std::unordered_map<Digest, Spot>& spots() const { return spots_; }

 private:
  std::string folder_;
  Fd fd_;
  std::vector<std::string> files_;  // relative paths
  std::unordered_map<Digest, Spot> spots_;
};

}  // namespace overcap
