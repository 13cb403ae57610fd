// SPDX-License-Identifier: Apache-2.0
#include "control/policy_apply.h"

#include <cerrno>
#include <sys/stat.h>

#include "base/text.h"
#include "clusters/all_clusters.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

// The file as it should be; the path when it had to be written.
Result<std::string> WriteSettings(const PolicyRendering::File& file, const std::string& folder) {
  PosixFiles files;
  std::string path = StrCat(folder, "/", file.name);
  const auto there = files.Read(path);
  if (there && *there == file.text) return std::string();
  // Everybody who submits jobs reads it.
  const std::string fresh = path + ".new";
  OC_TRY_VOID(files.WriteAtomic(fresh, file.text, true));
  if (chmod(fresh.c_str(), 0644) != 0)
    return Fail(ErrnoError(errno, StrCat("cannot open '", fresh, "' to all")));
  OC_TRY_VOID(files.Rename(fresh, path));
  OC_TRY_VOID(files.SyncFolder(folder));
  return path;
}

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
  applied.left = applied.found.settings;
  if (options.dry_run || applied.nothing()) return applied;
  OC_TRY_VOID(MakeSteps(*policies, options, &applied));
  if (options.folder.empty() || applied.left.empty()) return applied;
  OC_TRY(file, WriteSettings(applied.found.file, options.folder));
  applied.file = std::move(file);
  OC_TRY_VOID(policies->ReadFilesAgain(policy));
  OC_TRY(after, policies->Compare(policy));
  applied.left = std::move(after.settings);
  return applied;
}

}  // namespace overcap
