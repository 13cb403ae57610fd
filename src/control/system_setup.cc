// SPDX-License-Identifier: Apache-2.0
#include "control/system_setup.h"

#include "base/text.h"
#include "clusters/all_clusters.h"
#include "control/this_machine.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::string_view kUsualRoot = "/var/lib/overcap";
constexpr std::string_view kUsualPolicy = "/etc/overcap/policy.yaml";
constexpr std::string_view kUsualSocket = "/run/overcap/daemon.sock";

Result<void> Complete(std::string_view flag, std::string_view usual, std::string* path) {
  if (path->empty()) *path = usual;
  while (path->size() > 1 && path->back() == '/') path->pop_back();
  if (path->empty() || path->starts_with('/')) return {};
  return Fail(ErrorCode::kUsage, StrCat("'", flag, "' is '", *path, "', which is no absolute path"));
}

const ClusterConfig& SharedCluster(const Config& config) {
  for (const auto& [name, cluster] : config.clusters) {
    const DriverTraits* driver = FindDriver(cluster.driver);
    if (driver != nullptr && !driver->socket.empty()) return cluster;
  }
  return config.clusters.at("local");
}

}  // namespace

Result<SystemWords> CompleteSystemWords(SystemWords words) {
  OC_TRY_VOID(Complete("--root", kUsualRoot, &words.root));
  OC_TRY_VOID(Complete("--socket", kUsualSocket, &words.socket));
  OC_TRY_VOID(Complete("--policy", "", &words.policy_file));
  return words;
}

std::string SystemFlags(const SystemWords& words) {
  std::string flags;
  if (words.root != kUsualRoot) flags += StrCat(" --root ", ShellQuote(words.root));
  if (words.socket != kUsualSocket) flags += StrCat(" --socket ", ShellQuote(words.socket));
  if (words.stall_seconds != kUsualStallSeconds) flags += StrCat(" --stall ", words.stall_seconds);
  if (words.slack_seconds != kUsualSlackSeconds) flags += StrCat(" --slack ", words.slack_seconds);
  if (!words.policy_file.empty()) flags += StrCat(" --policy ", ShellQuote(words.policy_file));
  return flags;
}

SystemSetup FindSystemSetup(const SystemWords& words, const Config& config) {
  SystemSetup setup;
  setup.policy_file = words.policy_file;
  if (setup.policy_file.empty() && PosixFiles().Exists(std::string(kUsualPolicy)))
    setup.policy_file = kUsualPolicy;
  setup.machine = ThisMachine(SharedCluster(config), words.root, false);
  return setup;
}

}  // namespace overcap
