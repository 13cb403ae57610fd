// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/result.h"
#include "clusters/cluster.h"
#include "clusters/cluster_view.h"
#include "model/policy/policy.h"

namespace overcap {

// What a cluster looks like now: its own view, or for those that have none what its nodes and jobs tell.
Result<ClusterPicture> LookAt(Cluster& cluster, const PictureAges& ages, int64_t now_us);

// Whether it has a view of its own, and so knows more about others' jobs than its records say.
bool HasView(Cluster& cluster);

// The policy that the cluster's own engine follows; nothing: none, or it is not known.
std::optional<Policy> PolicyInForce(Cluster& cluster);

// "12 s ago", "3m20s ago"; with why it is no newer when it is stale.
std::string AgeText(const ClusterPicture& picture, int64_t now_us);

}  // namespace overcap
