// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/stored_node.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/attempt_folder.h"
#include "agent/code_folder.h"
#include "agent/courier/start_courier.h"
#include "agent/elastic/lost_head.h"
#include "agent/elastic/node_command.h"
#include "agent/elastic/node_process.h"
#include "agent/elastic/nodes_sent.h"
#include "agent/rank_environment.h"
#include "agent/slot_claim.h"
#include "agent/slurm/slurm_start.h"
#include "base/text.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kBringUs = 150'000'000;  // stores try for 90 s

class StoredNode {
 public:
  StoredNode(StoredNodeOrder order, int node, Courier* courier)
      : options_(std::move(order.options)),
        launch_(std::move(order.launch)),
        node_(node),
        attempt_(options_),
        courier_(*courier) {}

  Result<int> Run() {
    const std::string name = StrCat("attempt-", options_.attempt, "/");
    OC_TRY_VOID(Claim(name));
    courier_.Track({StrCat(name, "rank-", node_, ".log"), StrCat(name, "node-", node_, "/")});
    OC_TRY(process, Prepare());
    OC_TRY(status, RunToEnd(std::move(process)));
    if (status == ExitStatus(ErrorCode::kUnavailable))
      OC_TRY_VOID(CheckHead(attempt_.Path(), node_, &courier_));
    return status;
  }

 private:
  // Who reads the job's logs knows from it that this node has one; who comes after us, that they are ours.
  Result<void> Claim(const std::string& name) {
    const std::string claim = StrCat(name, "agent-0.node-", node_, ".claim");
    OC_TRY_VOID(files_.CreateExclusive(StrCat(options_.job_dir, "/", claim), ClaimToJson(OwnClaim())));
    OC_TRY(there, courier_.Create(claim, nullptr));
    if (there == files_.Read(StrCat(options_.job_dir, "/", claim)).value_or("")) return {};
    return Fail(ErrorCode::kConflict, StrCat("node ", node_, " of this attempt has been started before"));
  }

  Result<NodeProcess> Prepare() {
    OC_TRY_VOID(courier_.Bring({StrCat("attempt-", options_.attempt, "/agent-0.node-", node_, ".")}, kBringUs,
                               nullptr));
    OC_TRY(text, files_.Read(attempt_.Spec()));
    OC_TRY(spec, SpecFromJson(text));
    std::string blob;
    if (!spec.environment.empty()) {
      OC_TRY(brought, courier_.Blob(spec.environment, nullptr));
      blob = std::move(brought);
    }
    const auto copy = [this](const std::string& tree, const std::string& to) -> Result<void> {
      if (files_.Exists(to)) return {};  // this folder is the first node's, too
      return courier_.Code(tree, to, nullptr);
    };
    OC_TRY(folder, PrepareFolder(spec, attempt_, copy, nullptr));
    if (mkdir(StateFolder(options_).c_str(), 0700) != 0 && errno != EEXIST)
      return Fail(ErrnoError(errno, StrCat("cannot make '", StateFolder(options_), "'")));
    return ProcessFor(spec, blob, folder);
  }

  NodeProcess ProcessFor(const JobSpec& spec, const std::string& blob, const std::string& folder) const {
    const Variables own = Variables::OfThisProcess();
    const NodeCommand command{spec, options_.attempt, 0, options_.job_dir, attempt_.Path()};
    const std::vector<std::string> cluster = VariablesOfSlurm(own);
    Variables env(
        NodeVariables(command, RankEnvironment(blob, NoRank(spec), options_, {folder, 0, cluster}, 0)));
    for (const char* name : {"OVERCAP_RDZV_KEY", "OVERCAP_RDZV_HEAD"}) env.Set(name, own.Get(name));
    NodeProcess process{WordsOfNode(launch_, attempt_.Path(), node_), env.entries(), folder};
    process.argv.insert(process.argv.begin(), "overcap");
    return process;
  }

  const AgentOptions options_;
  const std::vector<std::string> launch_;
  const int node_;
  const AttemptFolder attempt_;
  Courier& courier_;
  PosixFiles files_;
};

std::string FailureLine(const Error& error) {
  return StrCat("overcap: node '", OwnHostName(), "': ", ToUtf8(error.message), "\n");
}

}  // namespace

std::vector<std::string> StoredNodeWords(const AgentOptions& options) {
  return {"--id",
          options.id,
          "--via",
          JobStoreToJson(options.via),
          "--node-folder",
          options.node_folder,
          "--backlog",
          StrCat(options.backlog),
          "--attempt",
          StrCat(options.attempt),
          "--"};
}

Result<StoredNodeOrder> ParseStoredNodeWords(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  if (end == words.end() || end + 1 == words.end() || end[1] != "launch")
    return Fail(ErrorCode::kUsage, "agent node takes --id ID --via STORE --node-folder DIR -- launch ...");
  StoredNodeOrder order;
  OC_TRY(options, ParseAgentOptions({words.begin(), end}));
  if (options.via.empty()) return Fail(ErrorCode::kUsage, "agent node: '--via' is missing");
  order.options = std::move(options);
  order.launch.assign(end + 1, words.end());
  return order;
}

Result<int> RunStoredNode(const std::vector<std::string>& words, int node) {
  OC_TRY(order, ParseStoredNodeWords(words));
  const AttemptFolder attempt(order.options);
  OC_TRY_VOID(MakeNodeFolder(order.options.node_folder));
  OC_TRY_VOID(PosixFiles().MakeFolders(attempt.Path()));
  // Slurm waits for all who hold the way to srun: the courier, which may outlive this process, is not among
  // them.
  const Fd srun(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  OC_TRY_VOID(WriteTo(attempt.Log(node)));
  auto courier = StartOnNode(order.options);
  if (!courier) {
    (void)WriteAll(srun.Get(), FailureLine(courier.error()));
    return Fail(courier.error());
  }
  const Result<int> status = StoredNode(std::move(order), node, &*courier).Run();
  // Where the logs of this node are read, and where srun's own words are.
  const std::string why = status ? "" : FailureLine(status.error());
  for (const int fd : {srun.Get(), STDERR_FILENO}) (void)WriteAll(fd, why);
  const CourierRest rest = courier->Finish(kDrainSeconds);
  const std::string said =
      rest.empty() ? SentLine(node) : StrCat("node '", OwnHostName(), "': ", rest.Text(), "\n");
  (void)WriteAll(srun.Get(), said);
  return status ? *status : ExitStatus(status.error().code);
}

}  // namespace overcap
