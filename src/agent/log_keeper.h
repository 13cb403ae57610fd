// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "agent/cluster_watch.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/log_bound.h"

namespace overcap {

// Keeps the logs of running ranks within `logs.max`, and passes all calls on to the cluster's watch.
class LogKeeper : public GroupCompanion {
 public:
  // `logs`, by rank, are borrowed; `watch` may be null.
  LogKeeper(const std::vector<Fd>& logs, int64_t max, const Clock& clock, GroupObserver* observer,
            ClusterWatch* watch);

  int64_t Prepare(std::vector<pollfd>* fds) override;
  bool Act(std::span<const pollfd> fds) override;
  int64_t GraceUs() const override;
  void Finish();  // after the last output

 private:
  void Tell();

  const Clock& clock_;
  GroupObserver& observer_;
  ClusterWatch* watch_;
  LogBound bound_;
};

}  // namespace overcap
