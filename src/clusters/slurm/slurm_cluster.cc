// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_cluster.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/job_planner.h"
#include "clusters/slurm/job_sender.h"
#include "clusters/slurm/job_verdict.h"
#include "clusters/slurm/job_waiter.h"
#include "clusters/slurm/node_kinds.h"
#include "clusters/slurm/policy/slurm_policy.h"
#include "clusters/slurm/slurm_jobs.h"
#include "clusters/slurm/slurm_sessions.h"
#include "clusters/slurm/slurm_view.h"
#include "sys/posix_files.h"
#include "sys/user.h"

namespace overcap {
namespace {

constexpr std::chrono::seconds kActTime{30};
constexpr size_t kMostAtOnce = 500;  // ids in one call
constexpr int64_t kNodesAgeUs = kWatchAgeUs;

}  // namespace

SlurmCluster::SlurmCluster(ClusterSettings settings)
    : SlurmCluster(std::make_unique<SlurmContext>(std::move(settings))) {}

SlurmCluster::SlurmCluster(std::unique_ptr<SlurmContext> context)
    : context_(std::move(context)),
      jobs_(std::make_unique<SlurmJobs>(context_.get())),
      sender_(std::make_unique<JobSender>(context_.get(), &jobs_->queue())),
      view_(std::make_unique<SlurmView>(context_.get())),
      sessions_(std::make_unique<SlurmSessions>(context_.get())),
      policy_(std::make_unique<SlurmPolicy>(context_.get())) {}

SlurmCluster::~SlurmCluster() = default;

ClusterSessions* SlurmCluster::Sessions() {
  return sessions_.get();
}

ClusterPolicy* SlurmCluster::Policies() {
  return policy_.get();
}

ClusterView* SlurmCluster::View() {
  return view_.get();
}

Capabilities SlurmCluster::GetCapabilities() const {
  Capabilities can;
  can.hold = can.array = can.dependencies = can.local_files = true;
  can.placement = can.warning = can.timeout_requeue = true;
  can.stores = context_->settings().depot != nullptr;
  can.max_nodes = 0;
  can.nodes = KindsOf(JobPlanner(context_.get()).KnownNodes());
  return can;
}

Result<SlurmCluster::Ahead> SlurmCluster::FindAhead(const JobSpec& spec,
                                                    const std::vector<JobRecord>& records) {
  Ahead ahead;
  for (size_t i = 0; i < records.size(); ++i) {
    const JobRecord& record = records[i];
    const bool replaced = i >= spec.after.size();
    const bool any_end = replaced || spec.after[i].any_end;
    if (IsFinal(record.state)) {
      if (!any_end && record.state != JobState::kSucceeded && ahead.never.empty())
        ahead.never = StrCat("job '", record.spec.id, "' did not succeed");
      continue;
    }
    OC_TRY(number, Number(record));
    // Slurm takes what it does not know for ended.
    SlurmQueue& queue = jobs_->queue();
    const SlurmSight sight = queue.SightOf(record.spec.id, ParseInt(number).value_or(0));
    const auto handle = jobs_->Folder(record.spec.id).Handle();
    if (queue.known() && sight.rows.empty() && handle && handle->at_us < queue.taken_us()) {
      return Fail(ErrorCode::kConflict,
                  StrCat("Slurm has forgotten job '", record.spec.id, "', so nothing can wait for its end"));
    }
    ahead.after.push_back({ParseInt(number.substr(0, number.find('_'))).value_or(0), any_end});
  }
  return ahead;
}

std::vector<std::string> SlurmCluster::IdsAhead(const JobSpec& spec) {
  std::vector<std::string> ids;
  for (const Dependency& dependency : spec.after) ids.push_back(dependency.job_id);
  if (!spec.replaces.empty()) ids.push_back(spec.replaces);
  return ids;
}

// Asks nobody: what the queue would add is looked at when the job is sent.
Result<SubmitPlan> SlurmCluster::Plan(const JobSpec& spec) {
  std::vector<JobRecord> records;
  for (const std::string& id : IdsAhead(spec)) {
    auto record = IsSlurmNumber(id) ? Result<JobRecord>() : jobs_->Glance(id);
    if (!record) return Fail(std::move(record).error());
    if (IsSlurmNumber(id)) record->spec.id = id;
    records.push_back(*std::move(record));
  }
  OC_TRY(ahead, FindAhead(spec, records));
  JobPlanner planner(context_.get());
  OC_TRY(plan, planner.Plan(spec, std::move(ahead.after)));
  if (!ahead.never.empty()) plan.notes.push_back(ahead.never + ": the job will never start");
  return SubmitPlan{spec, planner.Text(spec, plan), std::move(plan.notes)};
}

void SlurmCluster::Expect(const SubmitPlan& plan) {
  sender_->Expect(JobPlanner(context_.get()).Command(plan.spec.id, plan.spec.placement));
}

Result<JobRecord> SlurmCluster::Submit(const SubmitPlan& plan) {
  const JobSpec& spec = plan.spec;
  if (jobs_->Folder(spec.id).Exists()) {
    OC_TRY(known, jobs_->Folder(spec.id).Spec());
    if (!(known == spec)) return Fail(ErrorCode::kConflict, StrCat("there is another job '", spec.id, "'"));
    if (jobs_->Folder(spec.id).Handle()) return AfterSubmit(spec);
  }
  OC_TRY(records, jobs_->Query(IdsAhead(spec), 0));
  OC_TRY(ahead, FindAhead(spec, records));
  JobPlanner planner(context_.get());
  OC_TRY(sbatch, planner.Plan(spec, std::move(ahead.after)));
  // In this order: the embedded engine, which may share the root, leaves alone what the index knows.
  jobs_->index().Open(spec.id);
  OC_TRY(made, jobs_->Folder(spec.id).Make(spec, sbatch.script));
  if (!ahead.never.empty()) return NeverStarted(spec, ahead.never);
  auto handle = sender_->Send(spec, made, sbatch, planner.Named(spec));
  if (!handle) {
    if (!jobs_->Folder(spec.id).Exists()) jobs_->index().Forget(spec.id);
    return Fail(std::move(handle).error());
  }
  // Of one that has just been sent its folder says nothing that is not known here.
  if (!made || !spec.replaces.empty()) return AfterSubmit(spec);
  JobEvidence evidence;
  evidence.spec = spec;
  evidence.folder = jobs_->Folder(spec.id).path();
  evidence.handle = *std::move(handle);
  return JudgeJob(evidence, SlurmSight(), context_->clock().WallUs()).record;
}

// Sent, and what it replaces may go: not before, or a refusal would leave neither.
Result<JobRecord> SlurmCluster::AfterSubmit(const JobSpec& spec) {
  OC_TRY(record, jobs_->Glance(spec.id));
  if (!spec.replaces.empty() && !IsFinal(record.state))
    OC_TRY_VOID(Cancel({spec.replaces}, StrCat("replaced by ", spec.id)));
  return record;
}

Result<JobRecord> SlurmCluster::NeverStarted(const JobSpec& spec, const std::string& why) {
  SlurmJobFolder folder = jobs_->Folder(spec.id);
  OC_TRY_VOID(folder.MakeDurable());
  JobRecord record;
  record.spec = spec;
  record.dir = folder.path();
  record.state = JobState::kCancelled;
  record.reason = why;
  record.ended_us = context_->clock().WallUs();
  return jobs_->Settle(std::move(record));
}

Result<std::vector<JobRecord>> SlurmCluster::Query(const std::vector<std::string>& ids) {
  return jobs_->Query(ids, 0);
}

Result<std::vector<JobRecord>> SlurmCluster::QueryRecent(const std::vector<std::string>& ids,
                                                         int64_t max_age_us) {
  return jobs_->Query(ids, max_age_us);
}

Result<void> SlurmCluster::ForEach(const JobFilter& filter,
                                   const std::function<void(const JobRecord&)>& take) {
  return jobs_->ForEach(filter, take);
}

Result<std::vector<JobRecord>> SlurmCluster::List(const JobFilter& filter) {
  return jobs_->List(filter);
}

Result<std::vector<std::string>> SlurmCluster::Resolve(const std::vector<std::string>& refs) {
  return jobs_->Resolve(refs);
}

Result<std::string> SlurmCluster::Number(const JobRecord& record) {
  if (IsSlurmNumber(record.spec.id)) return record.spec.id;
  if (const auto handle = jobs_->Folder(record.spec.id).Handle()) return StrCat(handle->slurm_id);
  return Fail(ErrorCode::kUnavailable, StrCat("Slurm has not said yet which job '", record.spec.id, "' is"),
              "try again in a moment");
}

// In calls of a bearable length. Jobs that have ended meanwhile are fine.
Result<void> SlurmCluster::Act(std::vector<std::string> command, const std::vector<std::string>& numbers,
                               bool comma) {
  for (size_t begin = 0; begin < numbers.size(); begin += kMostAtOnce) {
    const size_t end = std::min(numbers.size(), begin + kMostAtOnce);
    const std::vector<std::string> some(numbers.begin() + static_cast<std::ptrdiff_t>(begin),
                                        numbers.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<std::string> argv = command;
    if (comma) {
      argv.push_back(Join(some, ","));
    } else {
      argv.insert(argv.end(), some.begin(), some.end());
    }
    auto done = context_->Ask(argv, kActTime);
    if (!done && done.error().code != ErrorCode::kNotFound && done.error().code != ErrorCode::kConflict)
      return Fail(std::move(done).error());
  }
  return {};
}

Result<void> SlurmCluster::CheckOwn(const std::vector<std::string>& ids, std::string_view verb) const {
  for (const std::string& id : ids) {
    if (!IsSlurmNumber(id)) OC_TRY_VOID(jobs_->CheckOwn(id, verb));
  }
  return {};
}

Result<void> SlurmCluster::Cancel(const std::vector<std::string>& ids, const std::string& reason) {
  if (ids.empty()) return {};
  OC_TRY_VOID(CheckOwn(ids, "stopped"));
  OC_TRY(records, jobs_->Query(ids, 0));
  std::vector<std::string> numbers;
  for (const JobRecord& record : records) {
    if (IsFinal(record.state)) continue;
    if (!IsSlurmNumber(record.spec.id)) {
      OC_TRY_VOID(
          jobs_->Folder(record.spec.id).WriteCancel({context_->clock().WallUs(), UserName(), reason}));
      TellStore(record);
    }
    // Without a number its agent sees the wish when it starts.
    if (auto number = Number(record)) numbers.push_back(*std::move(number));
  }
  return Act({"scancel"}, numbers, false);
}

// Its node does not see the folder. Without the wish the agent takes Slurm's word for it.
void SlurmCluster::TellStore(const JobRecord& record) {
  const auto wish = PosixFiles().Read(jobs_->Folder(record.spec.id).path() + "/cancel.json");
  if (!wish || record.spec.store.empty() || !context_->settings().depot) return;
  (void)context_->settings().depot->Create(record.spec, "cancel.json", *wish);
}

Result<void> SlurmCluster::Hold(const std::vector<std::string>& ids) {
  OC_TRY_VOID(CheckOwn(ids, "held"));
  OC_TRY(records, jobs_->Query(ids, 0));
  std::vector<std::string> numbers;
  for (const JobRecord& record : records) {
    const bool waits =
        record.state == JobState::kQueued || record.state == JobState::kHeld || record.tasks.queued > 0;
    if (!waits) {
      return Fail(ErrorCode::kConflict, StrCat("job '", record.spec.id, "' is ", JobStateName(record.state)));
    }
    OC_TRY(number, Number(record));
    numbers.push_back(std::move(number));
  }
  OC_TRY_VOID(Act({"scontrol", "hold"}, numbers, true));
  return NoteHold(records, true);
}

Result<void> SlurmCluster::Release(const std::vector<std::string>& ids) {
  OC_TRY_VOID(CheckOwn(ids, "released"));
  OC_TRY(records, jobs_->Query(ids, 0));
  std::vector<std::string> numbers;
  std::erase_if(records, [](const JobRecord& record) {
    return IsFinal(record.state) || (record.state == JobState::kRunning && record.tasks.queued == 0);
  });
  for (const JobRecord& record : records) {
    OC_TRY(number, Number(record));
    numbers.push_back(std::move(number));
  }
  OC_TRY_VOID(Act({"scontrol", "release"}, numbers, true));
  return NoteHold(records, false);
}

Result<void> SlurmCluster::NoteHold(const std::vector<JobRecord>& records, bool held) {
  for (const JobRecord& record : records) {
    if (IsSlurmNumber(record.spec.id)) continue;
    OC_TRY_VOID(jobs_->Folder(record.spec.id).WriteHold({context_->clock().WallUs(), held}));
  }
  return {};
}

Result<void> SlurmCluster::Remove(const std::vector<std::string>& ids) {
  OC_TRY_VOID(CheckOwn(ids, "removed"));
  OC_TRY(records, jobs_->Query(ids, 0));
  for (const JobRecord& record : records) {
    if (IsSlurmNumber(record.spec.id)) {
      return Fail(ErrorCode::kConflict,
                  StrCat("job '", record.spec.id, "' was not submitted with overcap: it has no folder"));
    }
    if (!IsFinal(record.state)) {
      return Fail(ErrorCode::kConflict, StrCat("job '", record.spec.id, "' is ", JobStateName(record.state)),
                  StrCat("overcap abort ", record.spec.id, " stops it"));
    }
  }
  PosixFiles files;
  const std::string trash = context_->settings().root + "/trash";
  OC_TRY_VOID(files.MakeFolders(trash));
  for (const JobRecord& record : records) {
    const std::string grave = StrCat(trash, "/", record.spec.id, "-", context_->random().Next());
    auto moved = files.Rename(jobs_->Folder(record.spec.id).path(), grave);
    if (!moved && moved.error().code != ErrorCode::kNotFound) return moved;  // the same id twice
    jobs_->index().Forget(record.spec.id);
    (void)files.RemoveTree(grave);
  }
  return {};
}

Result<bool> SlurmCluster::Wait(const std::vector<std::string>& ids, WaitUntil until,
                                int64_t timeout_seconds) {
  return JobWaiter(context_.get(), jobs_.get()).Wait(ids, until, timeout_seconds);
}

Result<std::vector<NodeInfo>> SlurmCluster::Nodes() {
  OC_TRY(text, context_->mirror().Read(MirrorKind::kNodes, kNodesAgeUs));
  OC_TRY(parsed, ParseSinfo(*text.text, text.mark));
  std::vector<NodeInfo> nodes;
  for (const SlurmNode& node : parsed.nodes) nodes.push_back(InfoOf(node));
  return nodes;
}

}  // namespace overcap
