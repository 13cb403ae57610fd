// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/node_code.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <unistd.h>

#include "agent/courier/start_courier.h"
#include "agent/side_tool.h"
#include "agent/slurm/side_step.h"
#include "base/text.h"
#include "snapshot/materialise.h"
#include "snapshot/store.h"
#include "stores/job_files.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr int64_t kLongestUs = 3600LL * 1'000'000;
constexpr std::string_view kDone = "overcap-fetched", kFailed = "overcap-failed ";

std::string AttemptOf(const NodeFetch& fetch) {
  return fetch.to.substr(0, fetch.to.rfind('/'));
}

Result<void> Remove(const NodeFetch& fetch) {
  PosixFiles files;
  const std::string attempt = AttemptOf(fetch);
  // Tasks of an array share the attempt's folder, not the code in it.
  if (!fetch.to.ends_with("/code")) OC_TRY_VOID(files.RemoveTree(fetch.to));
  // The rest of an agent's node is the agent's to clean up.
  const std::vector<std::string> names = files.List(attempt).value_or(std::vector<std::string>());
  if (std::any_of(names.begin(), names.end(), [](const auto& name) { return name.ends_with(".claim"); }))
    return {};
  if (fetch.to.ends_with("/code")) OC_TRY_VOID(files.RemoveTree(attempt));
  if (rmdir(attempt.c_str()) != 0 && errno != ENOENT) return {};
  (void)rmdir((fetch.job_dir + "/state").c_str());
  OC_TRY_VOID(files.Remove(fetch.job_dir + "/spec.json"));
  (void)rmdir(fetch.job_dir.c_str());
  return {};
}

// The agent's node has both already.
Result<void> Fetch(const NodeFetch& fetch, const JobStoreOpener& open) {
  PosixFiles files;
  if (files.Exists(fetch.to)) return {};
  OC_TRY_VOID(MakeNodeFolder(fetch.node_folder));
  OC_TRY_VOID(files.MakeFolders(AttemptOf(fetch)));
  OC_TRY_VOID(files.MakeFolders(fetch.job_dir + "/state"));
  const std::string spec = fetch.job_dir + "/spec.json";
  if (!files.Exists(spec)) {
    OC_TRY(job, open(fetch.via, ""));
    OC_TRY(text, job->Get(StoredJobKey(fetch.job_dir.substr(fetch.job_dir.rfind('/') + 1), "spec.json")));
    OC_TRY_VOID(files.WriteAtomic(spec, text, false));
  }
  if (fetch.tree.empty()) return {};
  OC_TRY_VOID(files.MakeFolders(fetch.store_dir));
  OC_TRY(objects, open(fetch.via, "store"));
  OC_TRY(store,
         SnapshotStore::Open(fetch.store_dir, {.objects = std::shared_ptr<Store>(std::move(objects))}));
  const auto made = Materialise(store, fetch.tree, fetch.to);
  if (!made && made.error().code != ErrorCode::kConflict) return Fail(made.error());
  return {};
}

Result<LaunchCommand> StepFor(const NodeFetch& fetch, const SrunSetting& setting) {
  std::vector<std::string> command{setting.binary, "agent"};
  for (std::string& word : FetchWords(fetch)) command.push_back(std::move(word));
  return SideStep(setting.srun, setting.nodes, {"--job-name=overcap-fetch"}, command);
}

// What the step printed: a line of each node.
Result<void> Judge(const std::string& text, size_t nodes) {
  size_t done = 0;
  for (const std::string& line : Split(text, '\n')) {
    if (line == kDone) ++done;
    if (line.starts_with(kFailed)) return Fail(ErrorCode::kUnavailable, line.substr(kFailed.size()));
  }
  if (done >= nodes) return {};
  return Fail(ErrorCode::kUnavailable,
              StrCat("the code came to ", done, " of ", CountOf(static_cast<int64_t>(nodes), "node")));
}

}  // namespace

std::vector<std::string> FetchWords(const NodeFetch& fetch) {
  return {"fetch",
          fetch.node_folder,
          fetch.job_dir,
          fetch.store_dir,
          JobStoreToJson(fetch.via),
          fetch.tree,
          fetch.to,
          fetch.remove ? "remove" : "make"};
}

Result<NodeFetch> ParseFetchWords(const std::vector<std::string>& words) {
  if (words.size() != 7) return Fail(ErrorCode::kUsage, "agent fetch takes seven words");
  OC_TRY(via, JobStoreFromJson(words[3]));
  for (const std::string& path : {words[0], words[1], words[2], words[5]}) {
    if (!path.starts_with('/')) return Fail(ErrorCode::kUsage, StrCat("'", path, "' is no absolute path"));
  }
  return NodeFetch{words[0], words[1], words[2], std::move(via), words[4], words[5], words[6] == "remove"};
}

Result<int> RunFetch(const NodeFetch& fetch, const JobStoreOpener& open) {
  const auto fetched = fetch.remove ? Remove(fetch) : Fetch(fetch, open);
  const std::string line =
      fetched ? StrCat(kDone, "\n")
              : StrCat(kFailed, "node '", OwnHostName(), "': ", ToUtf8(fetched.error().message), "\n");
  (void)WriteAll(STDOUT_FILENO, line);
  return 0;
}

Result<void> FetchOnNodes(const NodeFetch& fetch, const SrunSetting& setting, const Clock& clock,
                          Supervisor* supervisor) {
  OC_TRY(step, StepFor(fetch, setting));
  Variables variables = Variables::OfThisProcess();
  for (const std::string& name : step.unset) variables.Remove(name);
  std::vector<std::string> env = variables.entries();
  env.insert(env.end(), step.env.begin(), step.env.end());
  OC_TRY(tool, SideTool::Start(step.argv, env, clock.MonotonicUs() + kLongestUs));
  while (!tool.Step(clock.MonotonicUs())) {
    if (!fetch.remove && supervisor->CancelRequested())
      return Fail(ErrorCode::kConflict, "stopped while the code was brought to the nodes");
    pollfd fd = tool.PollFd();
    (void)poll(&fd, 1, 50);
  }
  return Judge(tool.text(), setting.nodes.size());
}

}  // namespace overcap
