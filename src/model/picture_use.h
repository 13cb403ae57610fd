// SPDX-License-Identifier: Apache-2.0
// Who uses how much of a shared cluster. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster_picture.h"

namespace overcap {

// Of some jobs together. Waiting tasks of an array count one by one.
struct PictureUse {
  int jobs = 0, gpus = 0, cpus = 0;                          // running, not over the cap
  int overcap_jobs = 0, overcap_gpus = 0, overcap_cpus = 0;  // running over the cap
  int waiting_jobs = 0, waiting_gpus = 0, waiting_cpus = 0;  // over the cap or not
  int capped_jobs = 0, capped_gpus = 0;                      // of those that wait: because a cap is in use
  std::map<std::string, int> types;                          // running GPUs by type, over the cap or not
  int yielding_gpus = 0;                                     // of `gpus`: they give way to labmates
  bool operator==(const PictureUse&) const = default;
};

bool HoldsNodes(const PictureJob& job);
void AddUse(const PictureJob& job, PictureUse* use);
PictureUse UseOf(const ClusterPicture& picture, const std::function<bool(const PictureJob&)>& counts);

// Whether a job of lab `lab` counts for `of`: its own, or one below it.
bool LabIsWithin(const ClusterPicture& picture, std::string_view lab, std::string_view of);

// What counts against the lab's cap, with those of the labs below it.
PictureUse LabUse(const ClusterPicture& picture, std::string_view lab);

// GPUs that keep a job within the lab's cap from starting; one that yields is kept by all that count.
int GpusInTheWay(const PictureUse& of_lab, bool yields);

// The lab itself or the nearest above it with a cap on GPUs; nullptr: none has.
const PictureLab* CappedLab(const ClusterPicture& picture, std::string_view lab);

// The lab whose jobs a user's are, when they name none; "" when that is not known.
std::string DefaultLab(const ClusterPicture& picture, std::string_view user);

}  // namespace overcap
