// SPDX-License-Identifier: Apache-2.0
#include "control/policy_apply.h"

#include "base/text.h"
#include "clusters/all_clusters.h"

namespace overcap {
namespace {

Result<void> MakeSteps(ClusterPolicy& policies, const PolicyApplyOptions& options, PolicyApplied* applied) {
  for (const PolicyStep& step : applied->found.steps) {
    options.before_step(step);
    const auto made = policies.Make(step);
    if (made)
      ++applied->made;
    else if (step.optional)
      applied->failed.push_back(made.error());
    else
      return Fail(made.error());
  }
  return {};
}

}  // namespace

Result<PolicyRendering> RenderPolicy(const std::string& driver, const Policy& policy) {
  const DriverTraits* traits = FindDriver(driver);
  if (traits == nullptr) {
    const std::string nearest = Nearest(driver, ClusterDrivers());
    return Fail(ErrorCode::kNotFound, StrCat("there is no driver '", driver, "'"),
                nearest.empty() ? StrCat("drivers are: ", Join(ClusterDrivers(), ", "))
                                : StrCat("did you mean '", nearest, "'?"));
  }
  if (traits->render_policy == nullptr)
    return Fail(ErrorCode::kUsage,
                StrCat("'", driver, "' has no scheduler of its own that could be told a policy"));
  return traits->render_policy(policy);
}

Result<PolicyApplied> ApplyPolicy(Cluster& cluster, const Policy& policy, const PolicyApplyOptions& options) {
  ClusterPolicy* policies = cluster.Policies();
  if (policies == nullptr) {
    return Fail(ErrorCode::kUsage, StrCat("cluster '", cluster.Name(), "' takes no policy"),
                "choose one with a scheduler of its own: overcap -c NAME policy apply FILE");
  }
  policies->TakeText(options.text);
  PolicyApplied applied;
  OC_TRY(found, policies->Compare(policy));
  applied.found = std::move(found);
  if (options.dry_run || applied.nothing()) return applied;
  if (applied.found.blocked) return Fail(*applied.found.blocked);
  OC_TRY_VOID(MakeSteps(*policies, options, &applied));
  if (!applied.found.settings.empty()) OC_TRY_VOID(policies->WaitUntilKnown(policy));
  return applied;
}

}  // namespace overcap
