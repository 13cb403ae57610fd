// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_context.h"

#include <algorithm>
#include <unistd.h>

#include "base/text.h"
#include "clusters/slurm/accounts_text.h"
#include "clusters/slurm/config_text.h"
#include "clusters/slurm/history_text.h"
#include "clusters/slurm/partition_text.h"
#include "clusters/slurm/sinfo_text.h"
#include "clusters/slurm/squeue_text.h"
#include "clusters/slurm/submit_reply.h"
#include "clusters/slurm/tool_variables.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr size_t kMostOutput = size_t{256} << 20;
constexpr int64_t kHistoryUs = int64_t{14} * 86400 * 1'000'000;

// Of programs that know no marks.
template <typename Parse>
MirrorSource Unmarked(std::vector<std::string> (*command)(), Parse parse) {
  return {[command](std::string_view, int64_t) { return command(); },
          [parse](std::string_view text, std::string_view) -> Result<void> {
            OC_TRY_VOID(parse(text));
            return {};
          }};
}

template <typename Parse>
auto CheckWith(Parse parse) {
  return [parse](std::string_view text, std::string_view mark) -> Result<void> {
    OC_TRY_VOID(parse(text, mark));
    return {};
  };
}

std::map<MirrorKind, MirrorSource> Sources() {
  const auto squeue = [](std::string_view mark, int64_t) { return SqueueCommand(mark); };
  const auto sinfo = [](std::string_view mark, int64_t) { return SinfoCommand(mark); };
  const auto history = [](std::string_view mark, int64_t now_us) {
    return HistoryCommand(now_us - kHistoryUs, mark);
  };
  return {{MirrorKind::kQueue, {squeue, CheckSqueue}},
          {MirrorKind::kNodes, {sinfo, CheckWith(ParseSinfo)}},
          {MirrorKind::kPartitions, Unmarked(PartitionCommand, ParsePartitions)},
          {MirrorKind::kAssociations, Unmarked(AssociationsCommand, ParseAssociations)},
          {MirrorKind::kQos, Unmarked(QosCommand, ParseQos)},
          {MirrorKind::kUsers, Unmarked(UsersCommand, ParseUsers)},
          {MirrorKind::kConfig, Unmarked(ConfigCommand, ParseConfig)},
          {MirrorKind::kHistory, {history, CheckWith(ParseHistory)}}};
}

}  // namespace

SlurmContext::SlurmContext(ClusterSettings settings) : settings_(std::move(settings)) {}

uid_t SlurmContext::user_id() const {
  return geteuid();
}

std::string SlurmContext::JobFolder(std::string_view id) const {
  return StrCat(settings_.root, "/jobs/", id);
}

std::vector<std::string> SlurmContext::ToolEnvironment(std::string_view program) const {
  const Variables given = Variables::OfThisProcess();
  Variables variables;
  for (const std::string& entry : given.entries()) {
    const std::string name = entry.substr(0, entry.find('='));
    if (!IsUnwantedToolVariable(name))
      variables.Set(name, entry.substr(std::min(name.size() + 1, entry.size())));
  }
  for (const auto& [name, value] : ToolVariables(program)) variables.Set(name, value);
  return variables.entries();
}

Result<std::string> SlurmContext::Program(std::string_view name) const {
  const std::string& folder = settings_.scheduler.programs;
  const std::vector<std::string> environment = ToolEnvironment(name);
  const std::string path(folder.empty() ? PathOf(environment) : folder);
  auto program = ResolveProgram(name, path, "/");
  if (program) return program;
  return Fail(ErrorCode::kUnavailable,
              StrCat("cluster '", settings_.name, "': there is no '", name, "' ",
                     folder.empty() ? "on PATH" : StrCat("in '", folder, "'")),
              "run this on a login node of the cluster, or load its Slurm module first");
}

Result<ToolAnswer> SlurmContext::CallProgram(SpawnRequest request, std::chrono::milliseconds timeout) {
  return CallTool(std::move(request), timeout, kMostOutput);
}

Result<std::unique_ptr<ToolRun>> SlurmContext::StartProgram(SpawnRequest request,
                                                            std::chrono::milliseconds timeout) {
  return StartTool(std::move(request), timeout, kMostOutput);
}

Result<ToolAnswer> SlurmContext::Call(std::vector<std::string> argv, std::chrono::milliseconds timeout) {
  OC_TRY(program, Program(argv[0]));
  SpawnRequest request;
  request.program = std::move(program);
  request.env = ToolEnvironment(argv[0]);
  request.argv = std::move(argv);
  return CallProgram(std::move(request), timeout);
}

Result<std::string> SlurmContext::Ask(const std::vector<std::string>& argv,
                                      std::chrono::milliseconds timeout) {
  OC_TRY(answer, Call(argv, timeout));
  if (answer.end.ok()) return std::move(answer.out);
  return Fail(ReadToolFailure(argv[0], answer.err, answer.end.exit_status, {settings_.name}).error);
}

Mirror& SlurmContext::mirror() {
  if (mirror_) return *mirror_;
  MirrorOptions options;
  const Variables given = Variables::OfThisProcess();
  options.cluster =
      StrCat(given.Get("SLURM_CONF"), "|", given.Get("SLURM_CLUSTERS"), "|", settings_.scheduler.programs);
  options.shared_folder = settings_.scheduler.mirror_folder;
  options.own_folders = OwnMirrorFolders(user_id(), settings_.root);
  MirrorSeams seams{
      &clock_, &random_,
      [this](const std::vector<std::string>& argv, std::chrono::milliseconds timeout) {
        auto answer = Call(argv, timeout);
        const bool nothing = answer && (SaysThereAreNoAccounts(argv, *answer) ||
                                        (argv[0] == "sacct" && SaysThereIsNoHistory(answer->err)));
        if (nothing) *answer = ToolAnswer{{0, 0}, "", ""};
        return answer;
      },
      [](int64_t us) { usleep(static_cast<useconds_t>(us)); },
      [this](const std::vector<std::string>& argv, const ToolAnswer& answer) {
        return ReadToolFailure(argv[0], answer.err, answer.end.exit_status, {settings_.name}).error;
      }};
  mirror_ = std::make_unique<Mirror>(std::move(seams), std::move(options), Sources());
  return *mirror_;
}

}  // namespace overcap
