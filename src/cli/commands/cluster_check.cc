// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "cli/commands/commands.h"
#include "cli/commands/findings.h"
#include "cli/world.h"
#include "control/check_cluster.h"
#include "control/open_cluster.h"

namespace overcap::cli {
namespace {

void PrintJson(const std::string& name, const std::vector<Finding>& findings, bool healthy, Output& out) {
  JsonWriter json;
  json.BeginObject().Field("cluster", name).Field("healthy", healthy).Key("findings").BeginArray();
  for (const Finding& finding : findings) WriteFinding(finding, &json);
  out.Json(json.EndArray().EndObject().Text());
}

Result<int> RunClusterCheck(World& world, const Args& args) {
  const std::string name = args.words().empty() ? world.cluster_name() : args.words()[0];
  OC_TRY(cluster, world.GetCluster(name));
  OC_TRY(root, ClusterRoot(name, world.config(), world.root()));
  const char* path = std::getenv("PATH");
  const auto findings = CheckCluster(*cluster, {root, world.config(), path != nullptr ? path : ""});
  const bool healthy = IsHealthy(findings);
  if (world.out().json()) {
    PrintJson(name, findings, healthy, world.out());
  } else {
    PrintFindings(findings, world.out());
  }
  return healthy ? 0 : ExitStatus(ErrorCode::kUnavailable);
}

}  // namespace

constinit const Command kClusterCheck = {
    .name = "cluster check",
    .summary = "whether a cluster can be used from here, and what is wrong",
    .usage = "[NAME]",
    .max_words = 1,
    .run = RunClusterCheck,
    .group = CommandGroup::kSetup};

}  // namespace overcap::cli
