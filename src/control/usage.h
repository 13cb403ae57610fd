// SPDX-License-Identifier: Apache-2.0
// Who uses how much of a cluster: by lab, by user, by type of GPU. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/cluster_picture.h"
#include "model/picture_use.h"

namespace overcap {

struct UsageRow {
  std::string name;
  PictureUse use;
  std::optional<int> gpu_cap, cpu_cap;  // labs only
};

struct UsageType {
  std::string type;  // "": not told
  int total = 0, used = 0, free = 0;
  int away = 0;     // not in use, on nodes that take no jobs
  int overcap = 0;  // of those in use
  int waiting = 0;  // asked for by name
};

struct UsageReport {
  std::string lab;  // only of this one; "": all
  PictureUse total;
  // Of the cluster: used, free and away make up all GPUs, and are of one moment, as the nodes tell them.
  int gpus = 0, gpus_used = 0, gpus_free = 0, gpus_away = 0, cpus = 0;
  std::vector<UsageRow> labs, users;  // those with most GPUs first
  std::vector<UsageType> types;
};

// kNotFound when the cluster has no lab of that name, with the nearest.
Result<UsageReport> MakeUsage(const ClusterPicture& picture, std::string_view lab);

std::string UsageToJson(const UsageReport& report, const ClusterPicture& picture, int64_t now_us);

}  // namespace overcap
