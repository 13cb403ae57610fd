// SPDX-License-Identifier: Apache-2.0
// Where the data of sparse files is, in the four ways in which GNU tar has written it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "snapshot/tar/tar_item.h"

namespace overcap {

// Of the header of type 'S' (old GNU). `more`: a block of more runs follows.
struct OldSparseHeader {
  std::vector<TarRun> runs;
  bool more = false;
  int64_t real_size = 0;
};
std::optional<OldSparseHeader> ParseOldSparseHeader(std::string_view block);
// Of such a following block; adds to `runs`. nullopt: it is none. Else whether yet another follows.
std::optional<bool> ParseOldSparseBlock(std::string_view block, std::vector<TarRun>* runs);

// "0,512,8192,100" (GNU.sparse.map, format 0.1).
std::optional<std::vector<TarRun>> ParseSparseList(std::string_view text);

// The map before the data of format 1.0: whole blocks of "COUNT\nOFFSET\nLENGTH\n...". Fed block by block.
class SparseMapParser {
 public:
  // nullopt: it is no map, or one that is too long. Else whether it is complete.
  std::optional<bool> Feed(std::string_view block);
  std::vector<TarRun>& runs() { return runs_; }

 private:
  std::optional<bool> Take(std::string_view line);

  std::string rest_;  // an unfinished line
  int64_t count_ = -1;
  bool have_offset_ = false;
  std::vector<TarRun> runs_;
};
// The same, to write: padded to whole blocks.
std::string EncodeSparseMap(const std::vector<TarRun>& runs);

// Ascending, apart and within `real_size`; their lengths add up to `stored`. Runs of no length are removed
// (GNU tar marks the end of a file so).
bool NormaliseRuns(int64_t real_size, int64_t stored, std::vector<TarRun>* runs);

}  // namespace overcap
