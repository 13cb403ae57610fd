// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/source_plan.h"

#include <algorithm>
#include <utility>

namespace overcap {

void SourcePlan::Release(int node) {
  const int from = std::exchange(nodes_[static_cast<size_t>(node)].from, kNobody);
  if (from == kHead) --head_feeds_;
  if (from >= 0) --nodes_[static_cast<size_t>(from)].feeds;
}

void SourcePlan::Ask(int node, bool failed) {
  Node& asking = nodes_[static_cast<size_t>(node)];
  if (failed && asking.from >= 0) asking.bad.insert(asking.from);
  Release(node);
  if (std::find(waiting_.begin(), waiting_.end(), node) == waiting_.end()) waiting_.push_back(node);
}

void SourcePlan::Complete(int node, bool serves) {
  Release(node);
  nodes_[static_cast<size_t>(node)].serves = serves;
}

void SourcePlan::Lost(int node) {
  Release(node);
  nodes_[static_cast<size_t>(node)].serves = false;
  std::erase(waiting_, node);
}

bool SourcePlan::AnyServes(const Node& asking) const {
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    if (nodes_[static_cast<size_t>(i)].serves && !asking.excluded.contains(i)) return true;
  }
  return false;
}

int SourcePlan::Choose(int node) const {
  const Node& asking = nodes_[static_cast<size_t>(node)];
  if (static_cast<int>(asking.bad.size()) >= kChances) return kHead;
  int best = kNobody;
  bool may_wait = false;  // for one that serves, and is busy
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const Node& other = nodes_[static_cast<size_t>(i)];
    if (!other.serves || i == node || asking.bad.contains(i) || asking.excluded.contains(i)) continue;
    may_wait = true;
    if (other.feeds >= kPerNode) continue;
    if (best == kNobody || other.feeds < nodes_[static_cast<size_t>(best)].feeds) best = i;
  }
  if (best != kNobody || may_wait) return best;
  // Nobody serves who could serve this one.
  if (!asking.bad.empty() && AnyServes(asking)) return kHead;
  return head_feeds_ < first_ ? kHead : kNobody;
}

std::vector<SourcePlan::Assignment> SourcePlan::Assign() {
  std::vector<Assignment> made;
  std::deque<int> still;
  for (const int node : waiting_) {
    const int from = Choose(node);
    if (from == kNobody) {
      still.push_back(node);
      continue;
    }
    nodes_[static_cast<size_t>(node)].from = from;
    ++(from == kHead ? head_feeds_ : nodes_[static_cast<size_t>(from)].feeds);
    made.push_back({node, from});
  }
  waiting_ = std::move(still);
  return made;
}

}  // namespace overcap
