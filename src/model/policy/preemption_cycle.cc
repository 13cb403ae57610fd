// SPDX-License-Identifier: Apache-2.0
#include "model/policy/preemption_cycle.h"

#include <algorithm>
#include <unordered_map>

namespace overcap {
namespace {

class Search {
 public:
  explicit Search(const Policy& policy) : policy_(policy), marks_(policy.partitions.size(), Mark::kNew) {
    for (size_t i = 0; i < policy.partitions.size(); i++) places_.emplace(policy.partitions[i].name, i);
  }

  std::vector<std::string> Run() {
    for (size_t i = 0; i < marks_.size(); i++) {
      if (marks_[i] == Mark::kNew && Visit(i)) return cycle_;
    }
    return {};
  }

 private:
  enum class Mark { kNew, kOpen, kDone };

  // Depth is bounded by the number of partitions.
  bool Visit(size_t place) {
    marks_[place] = Mark::kOpen;
    path_.push_back(place);
    for (const std::string& by : policy_.partitions[place].preempted_by) {
      const auto found = places_.find(by);
      if (found == places_.end() || marks_[found->second] == Mark::kDone) continue;
      if (marks_[found->second] == Mark::kOpen) return Close(found->second);
      if (Visit(found->second)) return true;
    }
    path_.pop_back();
    marks_[place] = Mark::kDone;
    return false;
  }

  bool Close(size_t first) {
    for (auto step = std::ranges::find(path_, first); step != path_.end(); ++step)
      cycle_.push_back(policy_.partitions[*step].name);
    cycle_.push_back(policy_.partitions[first].name);
    return true;
  }

  const Policy& policy_;
  std::vector<Mark> marks_;
  std::unordered_map<std::string, size_t> places_;
  std::vector<size_t> path_;
  std::vector<std::string> cycle_;
};

}  // namespace

std::vector<std::string> PreemptionCycle(const Policy& policy) {
  return Search(policy).Run();
}

}  // namespace overcap
