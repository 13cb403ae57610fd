// SPDX-License-Identifier: Apache-2.0
// What a pass has found out about nodes and the next one need not find out again: it holds until something
// happens on the node (the log says on which) or a known time has come. What is remembered never changes a
// decision, only what it costs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sched/pooled/rules.h"

namespace overcap::pooled {

// The nodes on which something has changed, in order. Only the end of it is kept.
class NodeLog {
 public:
  void Touch(int node, size_t most) {
    if (log_.size() >= most) {
      begin_ += log_.size();
      log_.clear();
    }
    log_.push_back(node);
  }
  uint64_t end() const { return begin_ + log_.size(); }
  // Calls `each(node)` for what was noted since `seen`. False: that is no longer known.
  template <typename Each>
  bool Since(uint64_t seen, const Each& each) const {
    if (seen < begin_) return false;
    for (size_t at = seen - begin_; at < log_.size(); ++at) each(log_[at]);
    return true;
  }

 private:
  std::vector<int> log_;
  uint64_t begin_ = 0;
};

// The nodes of one type, by position: those on which victims for one demand may be found, and until when
// there are none on the others.
struct VictimMemory {
  uint64_t seen = 0;
  std::vector<uint64_t> open;  // bits
  std::vector<int64_t> until;  // of those that are not open
  int64_t next_s = kForever;   // the earliest of `until`
  bool next_known = true;

  void Reset(size_t nodes) {
    open.assign((nodes + 63) / 64, ~uint64_t{0});
    if (nodes % 64 != 0) open.back() = (uint64_t{1} << (nodes % 64)) - 1;
    until.assign(nodes, 0);
    next_s = kForever;
    next_known = true;
  }
  bool IsOpen(size_t at) const { return (open[at / 64] >> (at % 64) & 1) != 0; }
  void Open(size_t at) {
    if (IsOpen(at)) return;
    open[at / 64] |= uint64_t{1} << (at % 64);
    next_known = next_known && until[at] != next_s;
  }
  void Close(size_t at, int64_t until_s) {
    open[at / 64] &= ~(uint64_t{1} << (at % 64));
    until[at] = until_s;
    next_s = std::min(next_s, until_s);
  }
  void Learn() {
    next_s = kForever;
    for (size_t at = 0; at < until.size(); ++at) {
      if (!IsOpen(at)) next_s = std::min(next_s, until[at]);
    }
    next_known = true;
  }
  // Opens those whose time has come.
  void Expire(int64_t now_s) {
    if (next_known && now_s < next_s) return;
    for (size_t at = 0; at < until.size(); ++at) {
      if (!IsOpen(at) && until[at] <= now_s) Open(at);
    }
    Learn();
  }
};

// The nodes of one type, by position: when one share of a demand fits there.
struct FreeMemory {
  struct Entry {
    int64_t value = 0;            // a time, or (`moves`) seconds from now
    int64_t until_s = -kForever;  // known until then
    bool moves = false;
  };
  uint64_t seen = 0;
  std::vector<Entry> nodes;
  void Reset(size_t count) { nodes.assign(count, Entry{}); }
};

// Memories by key; when they become too many all are forgotten.
template <typename Memory>
class Memories {
 public:
  // `size` nodes; brought up to date with the log by `touch(memory, node)`.
  template <typename TouchOne>
  Memory& Of(uint64_t key, size_t size, const NodeLog& log, const TouchOne& touch) {
    auto found = by_key_.find(key);
    if (found == by_key_.end()) {
      if (entries_ + size > kMostEntries) Forget();
      entries_ += size;
      found = by_key_.try_emplace(key).first;
      found->second.Reset(size);
    } else if (!log.Since(found->second.seen, [&](int node) { touch(&found->second, node); })) {
      found->second.Reset(size);
    }
    found->second.seen = log.end();
    return found->second;
  }
  void Forget() {
    by_key_.clear();
    entries_ = 0;
  }

 private:
  static constexpr size_t kMostEntries = 2'000'000;
  std::unordered_map<uint64_t, Memory> by_key_;
  size_t entries_ = 0;
};

}  // namespace overcap::pooled
