// SPDX-License-Identifier: Apache-2.0
// Who fetches from whom: some nodes from the head, then each that is complete serves others. Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <set>
#include <vector>

namespace overcap {

class SourcePlan {
 public:
  static constexpr int kHead = -1;    // over the node's connection to it, which ssh carries
  static constexpr int kFirst = 2;    // most nodes that are fed so while no node is complete
  static constexpr int kPerNode = 3;  // that fetch from one node at the same time
  static constexpr int kChances = 3;  // peers that may fail a node before it has to do with the head

  explicit SourcePlan(int nodes, int first = kFirst) : first_(first), nodes_(static_cast<size_t>(nodes)) {}
  // What a head with so many processors feeds at first: ssh keeps two of them busy for each node.
  static int FirstOf(unsigned processors) { return processors < 2 * kFirst ? 1 : kFirst; }

  // The node cannot get anything from there.
  void Exclude(int node, int from) { nodes_[static_cast<size_t>(node)].excluded.insert(from); }
  // The node needs somebody to fetch from; `failed`: what it had was no good.
  void Ask(int node, bool failed);
  void Complete(int node, bool serves);
  void Lost(int node);  // it has failed: nobody is sent there any more

  struct Assignment {
    int node = 0;
    int from = kHead;
    bool operator==(const Assignment&) const = default;
  };
  // What can be said now; each is said once.
  std::vector<Assignment> Assign();

 private:
  struct Node {
    bool serves = false;
    int feeds = 0;
    int from = kNobody;
    std::set<int> bad;  // that failed it
    std::set<int> excluded;
  };
  static constexpr int kNobody = -2;

  void Release(int node);
  int Choose(int node) const;  // kNobody: it has to wait
  bool AnyServes(const Node& asking) const;

  int first_;
  std::vector<Node> nodes_;
  int head_feeds_ = 0;
  std::deque<int> waiting_;
};

}  // namespace overcap
