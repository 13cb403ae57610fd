// SPDX-License-Identifier: Apache-2.0
// The cluster's picture out of what Slurm's programs told. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clusters/slurm/accounts_text.h"
#include "clusters/slurm/partition_text.h"
#include "clusters/slurm/sinfo_text.h"
#include "clusters/slurm/squeue_text.h"
#include "model/cluster_picture.h"

namespace overcap {

struct SlurmFacts {
  std::vector<SqueueJob> jobs;
  SinfoText nodes;
  std::vector<SlurmPartition> partitions;
  std::vector<SlurmAssociation> associations;  // of this cluster alone
  std::vector<SlurmQos> qos;
  std::vector<SlurmUser> users;
  std::string preempt_type;                     // "preempt/qos"; "": not known
  std::vector<std::string> overcap_partitions;  // as the configuration names them
};

// Without times, `stale` and notes: those are the caller's.
ClusterPicture MakeSlurmPicture(const SlurmFacts& facts);

// What Slurm's word for a reason says about caps: "AssocGrpGRES", "QOSMaxGRESPerUser".
CapOf CapOfReason(std::string_view word);
CapThing CapThingOfReason(std::string_view word);

// "123", "123_4", "123_[5-9]": as Slurm's own programs name it.
std::string NativeSlurmId(const SqueueJob& job);

}  // namespace overcap
