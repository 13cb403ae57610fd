// SPDX-License-Identifier: Apache-2.0
// Whether what arrives is what the source says of it (docs/formats/stores.md, "What is verified").
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "control/transfer/md5.h"
#include "control/transfer/transfer.h"
#include "stores/store.h"

namespace overcap {

// Of an object that travels in parts: each is added as it arrives, so that nothing has to be read twice.
class CopyProof {
 public:
  // Parts of the object that are kept apart on the way; of what the source tells these are best: MD5s of such
  // parts can be had in any order. 0: any size will do.
  static int64_t BestPartSize(const StoredChecksum& told);

  CopyProof(StoredChecksum told, int64_t size, int64_t part_size);

  // By any thread, once for each part; with sums that need the bytes in their order it waits for its turn, so
  // parts must be begun in their order. After GiveUp nobody waits any more.
  void Add(int64_t part, std::string_view bytes);
  void GiveUp();
  // Some parts came earlier and are not added: only reading back can tell.
  void Incomplete();

  // Gives bytes [offset, offset + bytes) of what has arrived.
  using ReadBack = std::function<Result<void>(int64_t offset, int64_t bytes, std::string* out)>;
  // What the content was proven by, kNone when nothing can tell; kCorrupt when it is not what the source
  // says. `read_back` may be empty.
  Result<ProofKind> Judge(const ReadBack& read_back);

 private:
  bool AnyOrder() const { return any_order_; }
  bool InOrder() const { return !any_order_ && (!told_.md5.empty() || !told_.part_sizes.empty()); }
  void AddInOrder(std::string_view bytes);
  std::string Sum();  // of what was added, as `told` has it
  Result<bool> Matches(const ReadBack& read_back, int64_t part_size, const std::string& expected) const;
  Result<ProofKind> JudgeByReading(const ReadBack& read_back, bool first_was_tried) const;

  const StoredChecksum told_;
  const int64_t size_;
  const bool any_order_;

  std::mutex mutex_;  // guards all below
  std::condition_variable turn_;
  int64_t next_ = 0;  // part whose turn it is
  bool given_up_ = false, incomplete_ = false;
  std::vector<std::string> digests_;  // of parts, 16 bytes each
  Md5 running_;                       // of the whole, or of the part that is under way
  int64_t in_part_ = 0;               // bytes of it so far
};

// Of an object that is in memory as a whole.
Result<ProofKind> ProveWhole(const StoredChecksum& told, std::string_view bytes);

}  // namespace overcap
