// SPDX-License-Identifier: Apache-2.0
#include "control/why_sooner.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.h"
#include "base/units.h"
#include "model/picture_fit.h"
#include "model/picture_use.h"

namespace overcap {
namespace {

bool Contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool ShareNodes(const ClusterPicture& picture, const std::string& a, const std::string& b) {
  return a == b || std::any_of(picture.nodes.begin(), picture.nodes.end(), [&](const PictureNode& node) {
           return Contains(node.partitions, a) && Contains(node.partitions, b);
         });
}

// Whether a job may go into the partition at all.
bool MayUse(const PicturePartition& partition, const PictureJob& job) {
  return partition.up && (partition.time_limit_s == 0 || job.time_limit_s <= partition.time_limit_s) &&
         !Contains(partition.denied_labs, job.lab) &&
         (partition.allowed_labs.empty() || Contains(partition.allowed_labs, job.lab));
}

// Whether somebody else waits for what is free there: then it is kept for them.
bool Wanted(const ClusterPicture& picture, const PicturePartition& partition, const PictureJob& job) {
  std::set<std::string_view> looked_at;  // thousands wait, in few partitions
  for (const PictureJob& other : picture.jobs) {
    if (HoldsNodes(other) || other.wait != WaitKind::kTurn || other.native_id == job.native_id) continue;
    if ((other.gpus > 0) != (job.gpus > 0) || !looked_at.insert(other.partition).second) continue;
    for (const std::string& name : Split(other.partition, ',')) {
      const PicturePartition* theirs = FindPartition(picture, name);
      if (theirs != nullptr && theirs->priority_tier >= partition.priority_tier &&
          ShareNodes(picture, name, partition.name))
        return true;
    }
  }
  return false;
}

bool HasRoom(const ClusterPicture& picture, const PicturePartition& partition, const PictureJob& job,
             const PictureNeed& need) {
  return CountFits(picture, partition.name, need).now >= need.nodes && !Wanted(picture, partition, job);
}

void AddPartitions(const ClusterPicture& picture, const PictureJob& job, bool capped, WhyAnswer* answer) {
  const PictureNeed need = NeedOf(job);
  const std::vector<std::string> own = Split(job.partition, ',');
  for (const PicturePartition& partition : picture.partitions) {
    if (Contains(own, partition.name) || !MayUse(partition, job)) continue;
    if ((capped && !partition.overcap) || !HasRoom(picture, partition, job, need)) continue;
    answer->sooner.push_back(
        StrCat("partition '", partition.name, "' has room for it now",
               partition.preemptable ? " (jobs there may be preempted: --requeue)" : ""));
  }
}

// The most GPUs with which it would start now in its own partitions; `most` is what its cap leaves.
void AddFewer(const ClusterPicture& picture, const PictureJob& job, int most, WhyAnswer* answer) {
  PictureNeed need = NeedOf(job);
  const int asked = need.gpus, cpus_each = asked > 0 ? need.cpus / asked : 0;
  for (int gpus = asked - 1; gpus > 0; --gpus) {
    if (gpus * need.nodes > most) continue;
    need.gpus = gpus, need.cpus = std::max(1, cpus_each * gpus);
    for (const std::string& name : Split(job.partition, ',')) {
      const PicturePartition* partition = FindPartition(picture, name);
      if (partition == nullptr || !MayUse(*partition, job) || !HasRoom(picture, *partition, job, need))
        continue;
      answer->sooner.push_back(StrCat("with ", CountOf(gpus * need.nodes, "GPU"), " instead of ", job.gpus,
                                      " it would start now in '", name, "'"));
      return;
    }
  }
}

void AddTypes(const ClusterPicture& picture, const PictureJob& job, WhyAnswer* answer) {
  PictureNeed need = NeedOf(job);
  if (need.gpus == 0 || (need.gpu_type.empty() && need.features.empty())) return;
  std::set<std::string> types;
  for (const PictureNode& node : picture.nodes) {
    for (const TypedGpus& kind : node.gpus) types.insert(kind.type);
  }
  need.features.clear();
  const std::string asked = need.gpu_type;
  for (const std::string& type : types) {
    if (type.empty() || type == asked) continue;
    need.gpu_type = type;
    for (const std::string& name : Split(job.partition, ',')) {
      const PicturePartition* partition = FindPartition(picture, name);
      if (partition == nullptr || !MayUse(*partition, job) || !HasRoom(picture, *partition, job, need))
        continue;
      answer->sooner.push_back(StrCat("GPUs of type '", type, "' are free now in '", name, "'"));
      break;
    }
  }
}

}  // namespace

void AddSooner(const ClusterPicture& picture, const PictureJob& job, WhyAnswer* answer) {
  const bool limit = job.wait == WaitKind::kLimit || (job.wait == WaitKind::kNever && answer->cap);
  if (!limit && job.wait != WaitKind::kTurn && job.wait != WaitKind::kNodes && job.wait != WaitKind::kNever)
    return;
  AddPartitions(picture, job, limit && job.cap_of == CapOf::kLab, answer);
  const bool gpu_cap = answer->cap && job.cap_thing == CapThing::kGpus;
  if (!limit || gpu_cap) {
    AddFewer(picture, job, gpu_cap ? answer->cap->cap - answer->cap->used : job.gpus, answer);
  }
  if (!limit) AddTypes(picture, job, answer);
}

}  // namespace overcap
