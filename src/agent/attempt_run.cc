// SPDX-License-Identifier: Apache-2.0
#include "agent/attempt_run.h"

#include <cerrno>
#include <optional>
#include <sys/stat.h>
#include <utility>

#include "agent/code_folder.h"
#include "agent/courier/carried_ranks.h"
#include "agent/courier/node_code.h"
#include "agent/ending.h"
#include "agent/mounts_step.h"
#include "agent/rank_environment.h"
#include "agent/rank_group.h"
#include "agent/script_tools.h"
#include "agent/slot_claim.h"
#include "base/text.h"
#include "launch/rank_error.h"
#include "launch/torch_run.h"
#include "model/agent_report.h"
#include "snapshot/store.h"
#include "sys/own_program.h"

namespace overcap {
namespace {

constexpr int64_t kRankBytes = 256;  // of the report
constexpr int64_t kSlackTimes = 3;   // as long as this node took for the code, others may

// Tells the report of a plain job's ranks.
class RankReporter : public GroupObserver {
 public:
  RankReporter(const Clock& clock, int master_port, ReportFile* report)
      : clock_(clock), master_port_(master_port), report_(*report) {}
  void OnStarted(const std::vector<pid_t>& pids) override {
    report_.Write(StartedLine(clock_.WallUs(), {pids.begin(), pids.end()}, master_port_));
  }
  void OnMemberEnd(int rank, const ProcessEnd& end) override {
    report_.Write(RankEndLine({rank, end.exit_status, end.signal, clock_.WallUs()}));
  }
  void OnNote(const std::string& text) override { report_.WriteIfRoom(NoteLine(clock_.WallUs(), text)); }

 private:
  const Clock& clock_;
  int master_port_;
  ReportFile& report_;
};

}  // namespace

Ending AttemptRun::Run() {
  Result<Ending> ending = RunSpec();
  if (ending) return *ending;
  if (supervisor_.CancelRequested()) return {JobState::kCancelled, -1, 0, -1, ""};
  return CannotRun(ending.error().message);
}

Result<Ending> AttemptRun::RunSpec() {
  OC_TRY(text, files_.Read(attempt_.Spec()));
  OC_TRY(spec, SpecFromJson(text));
  if (options_.time_seconds > 0) spec.resources.time_seconds = options_.time_seconds;
  if (options_.memory_mb > 0) spec.resources.mem_bytes = options_.memory_mb << 20;
  if (options_.memory_bytes > 0) spec.resources.mem_bytes = options_.memory_bytes;
  if (spec.command.empty())
    return Fail(ErrorCode::kCorrupt, StrCat("'", attempt_.Spec(), "' has no command"));
  OC_TRY_VOID(report_.Reserve(spec.resources.world_size() * kRankBytes));
  if (!spec.store.empty() && cluster_.courier == nullptr)
    return Fail(ErrorCode::kUnavailable, "the courier, which carries code and logs, could not be started");
  std::optional<SnapshotStore> store;
  if (cluster_.courier == nullptr) {
    OC_TRY(opened, SnapshotStore::Open(options_.store_dir));
    store.emplace(std::move(opened));
  }
  OC_TRY(blob, Environment(spec, store ? &*store : nullptr));
  const CodeCopier copy = store ? CopyFromStore(*store, &supervisor_)
                                : CodeCopier([this](const std::string& tree, const std::string& to) {
                                    return cluster_.courier->Code(tree, to, &supervisor_);
                                  });
  const int64_t begin_us = clock_.MonotonicUs();
  OC_TRY(folder, PrepareFolder(spec, attempt_, copy, &supervisor_));
  // The other nodes get it after us, and all from the same store.
  if (cluster_.courier != nullptr && cluster_.others)
    cluster_.others->slack_us = kSlackTimes * (clock_.MonotonicUs() - begin_us);
  OC_TRY_VOID(MakeStateFolder());
  return RunInFolder(spec, blob, folder);
}

Result<Ending> AttemptRun::RunInFolder(const JobSpec& spec, const std::string& blob,
                                       const std::string& folder) {
  const RankVariables variables{blob, cluster_.variables};
  const auto run = [&] {
    if (spec.resources.elastic()) return RunElastic(spec, variables, folder);
    return cluster_.on_nodes ? RunOnNodes(spec, variables, folder) : RunHere(spec, variables, folder);
  };
  const auto mounted = [&] { return spec.mounts.empty() ? run() : RunWithMounts(spec, blob, run); };
  const bool needed = cluster_.on_nodes || !spec.mounts.empty();
  auto ending =
      cluster_.courier != nullptr && cluster_.srun && needed ? RunWithCode(spec, mounted) : mounted();
  if (ending && ending->state == JobState::kFailed && ending->first_failed_rank >= 0 && spec.array.empty())
    TakeError(Variables(Split(blob, '\0')), &*ending);
  return ending;
}

// What the rank that failed first told of it, for the job's record and for the user's own program.
void AttemptRun::TakeError(const Variables& submitter, Ending* ending) {
  const std::string file = ErrorFileOf(attempt_.Path(), ending->first_failed_rank);
  if (ending->reason.empty()) ending->reason = ReadErrorFile(file).message;
  const auto handed = HandErrorOn(file, ending->exit_status, submitter.Get("TORCHELASTIC_ERROR_FILE"));
  if (!handed) report_.WriteIfRoom(NoteLine(clock_.WallUs(), handed.error().message));
}

Result<Ending> AttemptRun::RunWithCode(const JobSpec& spec, const std::function<Result<Ending>()>& run) {
  NodeFetch fetch{options_.node_folder,
                  options_.job_dir,
                  options_.store_dir,
                  options_.via,
                  spec.snapshot,
                  CodeFolder(spec, attempt_),
                  false};
  OC_TRY_VOID(FetchOnNodes(fetch, *cluster_.srun, clock_, &supervisor_));
  auto ending = run();
  // Agents of an elastic job's nodes have logs there that they still may have to upload: they clean up.
  if (spec.resources.elastic()) return ending;
  fetch.remove = true;
  (void)FetchOnNodes(fetch, *cluster_.srun, clock_, &supervisor_);
  return ending;
}

Result<Ending> AttemptRun::RunWithMounts(const JobSpec& spec, std::string_view blob,
                                         const std::function<Result<Ending>()>& run) {
  MountsStep mounts(spec, options_, attempt_, cluster_.srun ? &*cluster_.srun : nullptr, clock_,
                    &supervisor_);
  std::vector<std::string> env;
  for (std::string& entry : Split(blob, '\0')) {
    if (!entry.empty()) env.push_back(std::move(entry));
  }
  const auto say_notes = [&] {
    for (const std::string& note : mounts.TakeNotes()) report_.WriteIfRoom(NoteLine(clock_.WallUs(), note));
  };
  OC_TRY_VOID(mounts.Prepare(CodeFolder(spec, attempt_), std::move(env)));
  say_notes();
  Result<Ending> ending = run();
  const std::string unsaved = mounts.Release();
  say_notes();
  if (!unsaved.empty()) {
    report_.WriteIfRoom(NoteLine(clock_.WallUs(), unsaved));
    if (ending && ending->state == JobState::kSucceeded) return CannotRun(unsaved);
    if (ending) ending->reason += StrCat(ending->reason.empty() ? "" : "; ", unsaved);
  }
  return ending;
}

Result<std::string> AttemptRun::Environment(const JobSpec& spec, const SnapshotStore* store) {
  if (spec.environment.empty()) return std::string();
  if (store != nullptr) return store->GetBlob(spec.environment);
  return cluster_.courier->Blob(spec.environment, &supervisor_);
}

Result<Ending> AttemptRun::RunHere(const JobSpec& spec, const RankVariables& variables,
                                   const std::string& folder) {
  if (HasScriptTools(spec, options_)) OC_TRY_VOID(MakeScriptTools(attempt_, OwnProgram()));
  RankGroup ranks(spec, options_, variables, folder, clock_, &supervisor_, cluster_.watch);
  NotePinning(ranks.Guard());
  return RunRanks(spec, &ranks);
}

Result<Ending> AttemptRun::RunElastic(const JobSpec& spec, const RankVariables& variables,
                                      const std::string& folder) {
  // A cluster that kills sooner leaves less time.
  const int64_t asked_us = options_.grace_seconds * 1'000'000;
  const int64_t grace_us =
      cluster_.grace_us > 0 && cluster_.grace_us < asked_us ? cluster_.grace_us * 3 / 4 : asked_us;
  NodeAgents agents(spec, options_, variables, folder, attempt_.Path(), grace_us,
                    cluster_.others ? &*cluster_.others : nullptr, clock_, &supervisor_, cluster_.watch);
  NotePinning(agents.Guard());
  if (cluster_.courier != nullptr) {
    OC_TRY_VOID(ClaimNodes());
    cluster_.courier->Track(agents.GrowingFiles());
  }
  return RunRanks(spec, &agents);
}

// Who reads the job's logs from its store knows from them which nodes have one. In a cluster other nodes do
// it themselves.
Result<void> AttemptRun::ClaimNodes() {
  for (int node = 1; node < options_.nodes; ++node) {
    const std::string path = StrCat(attempt_.Path(), "/agent-", options_.slot, ".node-", node, ".claim");
    OC_TRY_VOID(files_.CreateExclusive(path, ClaimToJson(OwnClaim())));
    OC_TRY_VOID(cluster_.courier->Create(path.substr(options_.job_dir.size() + 1), &supervisor_));
  }
  return {};
}

void AttemptRun::NotePinning(const RankGuard& guard) {
  if (guard.PinError().empty()) return;
  report_.WriteIfRoom(
      NoteLine(clock_.WallUs(), StrCat("the ranks are not pinned to their processors: ", guard.PinError())));
}

Result<Ending> AttemptRun::RunOnNodes(const JobSpec& spec, const RankVariables& variables,
                                      const std::string& folder) {
  SrunSetting setting = *cluster_.srun;
  setting.folder = folder;
  OC_TRY(ranks, SrunRanks::Make(spec, options_, variables, setting, clock_, cluster_.watch));
  if (cluster_.courier != nullptr && spec.array.empty())
    cluster_.courier->Track({StrCat("attempt-", options_.attempt, "/launcher.log")});
  return RunRanks(spec, &ranks);
}

Result<Ending> AttemptRun::RunRanks(const JobSpec& spec, Ranks* ranks) {
  OC_TRY_VOID(WriteEnvironment(*ranks));
  if (supervisor_.CancelRequested()) return Ending{JobState::kCancelled, -1, 0, -1, ""};
  if (cluster_.courier == nullptr) return spec.array.empty() ? RunPlain(ranks) : RunArray(spec, ranks);
  CarriedRanks carried(ranks, options_.job_dir, cluster_.courier);
  return spec.array.empty() ? RunPlain(&carried) : RunArray(spec, &carried);
}

// Those of an array's tasks stand in it, and are made when a task is begun.
Result<void> AttemptRun::MakeStateFolder() {
  const std::string folder = StateFolder(options_);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return Fail(ErrnoError(errno, StrCat("cannot make '", folder, "'")));
  return {};
}

Result<void> AttemptRun::WriteEnvironment(const Ranks& ranks) {
  std::string text;
  for (const std::string& entry : ranks.FirstEnvironment()) text.append(entry).push_back('\0');
  Result<void> made = files_.CreateExclusive(attempt_.Environment(), text);
  if (!made && made.error().code == ErrorCode::kConflict) return {};  // another slot of the array was first
  return made;
}

Result<Ending> AttemptRun::RunPlain(Ranks* ranks) {
  std::vector<std::string> logs;
  for (size_t rank = 0; rank < ranks->Size(); ++rank) logs.push_back(attempt_.Log(static_cast<int>(rank)));
  RankReporter reporter(clock_, ranks->MasterPort(), &report_);
  return ranks->Run(logs, &reporter);
}

Result<Ending> AttemptRun::RunArray(const JobSpec& spec, Ranks* ranks) {
  std::optional<TaskCounter> counter;
  if (cluster_.task < 0) {
    OC_TRY(opened, TaskCounter::Open(attempt_.NextTask()));
    counter.emplace(std::move(opened));
  }
  // The names of the report and the counter must be as durable as what they say of the starts of tasks.
  OC_TRY_VOID(files_.SyncFolder(attempt_.Path()));
  OC_TRY_VOID(files_.SyncFolder(options_.job_dir));
  OC_TRY_VOID(files_.SyncFolder(options_.job_dir.substr(0, options_.job_dir.rfind('/'))));
  ArrayRun array(spec, options_, attempt_, clock_, &supervisor_, &report_, ranks, cluster_.judge);
  return counter ? array.Run(std::move(*counter)) : array.RunOne(cluster_.task);
}

}  // namespace overcap
