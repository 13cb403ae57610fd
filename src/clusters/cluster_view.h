// SPDX-License-Identifier: Apache-2.0
// What a cluster shared by many people looks like: who uses what, what is free, what its admins would say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/cluster_picture.h"
#include "model/job_spec.h"
#include "model/past_run.h"

namespace overcap {

// One thing that `cluster check` looked at.
struct ClusterFinding {
  std::string topic;  // "controller"
  enum class Health { kFine, kWorse, kBroken } health = Health::kFine;
  std::string text;  // one line
  std::string hint;  // what to do about it; may be empty
};

// Those who redraw by themselves are content with this age: every question to a shared cluster is paid by all
// its users. A minute of any number of them costs a Slurm controller at most 15 requests.
constexpr int64_t kWatchAgeUs = 12'000'000;
constexpr int64_t kWatchAsideAgeUs = 120'000'000;  // of what is beside the point for them

// How old what is told may be.
struct PictureAges {
  int64_t jobs_us = 0;
  int64_t nodes_us = 0;
};

class ClusterView {
 public:
  virtual ~ClusterView() = default;

  // Everything at once, not older than `ages` where the cluster can be asked; when it cannot, the last that
  // is known with `stale` set. Never an empty picture for a failure.
  virtual Result<ClusterPicture> Picture(const PictureAges& ages) = 0;

  // Runs of the last days that are over, of everybody who may be seen; may be some minutes old. None when
  // nobody writes them down.
  virtual Result<std::vector<PastRun>> PastRuns() = 0;

  // What the cluster's admins would tell somebody who submits this; one line each, never an error for what
  // cannot be known. Takes what is known already, asks the cluster only when nothing is.
  virtual std::vector<std::string> Advise(const JobSpec& spec) = 0;

  // Looks at all that can be wrong between here and the cluster. Bounded in time.
  virtual std::vector<ClusterFinding> Check() = 0;
};

}  // namespace overcap
