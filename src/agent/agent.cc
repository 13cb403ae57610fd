// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <unistd.h>

#include "agent/array_run.h"
#include "agent/attempt_folder.h"
#include "agent/code_folder.h"
#include "agent/ending.h"
#include "agent/rank_group.h"
#include "agent/report_file.h"
#include "base/text.h"
#include "model/agent_report.h"
#include "snapshot/store.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

constexpr int64_t kSyncFromUs = 1'000'000;  // shorter attempts are not worth a sync
constexpr int64_t kRankBytes = 256;         // of the report

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

class Agent {
 public:
  Agent(const AgentOptions& options, const AttemptFolder& attempt, Supervisor* supervisor, ReportFile* report)
      : options_(options), attempt_(attempt), supervisor_(*supervisor), report_(*report) {}

  Ending Run() {
    Result<Ending> ending = RunSpec();
    if (ending) return *ending;
    if (supervisor_.CancelRequested()) return {JobState::kCancelled, -1, 0, -1, ""};
    return CannotRun(ending.error().message);
  }

 private:
  Result<Ending> RunSpec() {
    OC_TRY(text, files_.Read(attempt_.Spec()));
    OC_TRY(spec, SpecFromJson(text));
    if (spec.command.empty())
      return Fail(ErrorCode::kCorrupt, StrCat("'", attempt_.Spec(), "' has no command"));
    OC_TRY_VOID(report_.Reserve(spec.resources.ranks_per_node * kRankBytes));
    OC_TRY(store, SnapshotStore::Open(options_.store_dir));
    std::string blob;
    if (!spec.environment.empty()) {
      OC_TRY(bytes, store.GetBlob(spec.environment));
      blob = std::move(bytes);
    }
    OC_TRY(folder, PrepareFolder(spec, attempt_, store, &supervisor_));
    RankGroup ranks(spec, options_, blob, folder, &supervisor_);
    OC_TRY_VOID(WriteEnvironment(ranks));
    if (!ranks.Guard().PinError().empty()) {
      Note(StrCat("the ranks are not pinned to their processors: ", ranks.Guard().PinError()));
    }
    if (supervisor_.CancelRequested()) return Ending{JobState::kCancelled, -1, 0, -1, ""};
    return spec.array.empty() ? RunPlain(&ranks) : RunArray(spec, &ranks);
  }

  Result<void> WriteEnvironment(const RankGroup& ranks) {
    std::string text;
    for (const std::string& entry : ranks.FirstEnvironment()) text.append(entry).push_back('\0');
    Result<void> made = files_.CreateExclusive(attempt_.Environment(), text);
    if (!made && made.error().code == ErrorCode::kConflict) return {};  // another slot of the array was first
    return made;
  }

  Result<Ending> RunPlain(RankGroup* ranks) {
    std::vector<std::string> logs;
    for (size_t rank = 0; rank < ranks->Size(); ++rank) logs.push_back(attempt_.Log(static_cast<int>(rank)));
    RankReporter reporter(clock_, ranks->MasterPort(), &report_);
    return ranks->Run(logs, &reporter);
  }

  Result<Ending> RunArray(const JobSpec& spec, RankGroup* ranks) {
    OC_TRY(counter, TaskCounter::Open(attempt_.NextTask()));
    // The report's name must be as durable as the starts of tasks in it.
    OC_TRY_VOID(files_.SyncFolder(attempt_.Path()));
    OC_TRY_VOID(files_.SyncFolder(options_.job_dir));
    OC_TRY_VOID(files_.SyncFolder(options_.job_dir.substr(0, options_.job_dir.rfind('/'))));
    return ArrayRun(spec, options_, attempt_, clock_, &supervisor_, &report_, ranks).Run(std::move(counter));
  }

  void Note(const std::string& text) { report_.WriteIfRoom(NoteLine(clock_.WallUs(), text)); }

  const AgentOptions& options_;
  const AttemptFolder& attempt_;
  Supervisor& supervisor_;
  ReportFile& report_;
  PosixClock clock_;
  PosixFiles files_;
};

Claim OwnClaim() {
  Claim claim;
  claim.pid = getpid();
  if (const auto self = Identify(getpid())) claim.start_ticks = static_cast<int64_t>(self->start_ticks);
  claim.boot_id = BootId();
  return claim;
}

}  // namespace

Result<int> RunAgent(const AgentOptions& options) {
  PosixClock clock;
  const int64_t begin_us = clock.MonotonicUs();
  SupervisorTimes times;
  times.grace = options.grace_seconds * 1'000'000;
  OC_TRY(supervisor, Supervisor::Make(clock, times));  // first: from here on no signal is lost
  SetDefaultSignals();
  setsid();  // fails when it leads a session already, which is as good

  const AttemptFolder attempt(options);
  const Claim claim = OwnClaim();
  PosixFiles files;
  // The room for the report first, under a name of our own: who has claimed must be able to say how it ended.
  const std::string draft = StrCat(attempt.Report(), ".", claim.pid);
  auto made = ReportFile::Make(draft);
  if (!made) {
    (void)files.Remove(draft);
    return Fail(made.error());
  }
  ReportFile report = *std::move(made);
  const Result<void> claimed = files.CreateExclusive(attempt.Claim(), ClaimToJson(claim));
  if (!claimed) (void)files.Remove(draft);
  if (!claimed && claimed.error().code == ErrorCode::kConflict) return kAgentNotMine;
  if (!claimed) return Fail(claimed.error());
  OC_TRY_VOID(files.Rename(draft, attempt.Report()));
  report.Write(ClaimedLine(clock.WallUs(), claim));

  const Ending ending = Agent(options, attempt, supervisor.get(), &report).Run();
  report.Write(EndLine(clock.WallUs(), ending));
  if (clock.MonotonicUs() - begin_us > kSyncFromUs) report.Sync();
  if (report.error() != 0)
    return Fail(ErrnoError(report.error(), StrCat("cannot write '", attempt.Report(), "'")));
  return kAgentDone;
}

}  // namespace overcap
