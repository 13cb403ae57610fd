// SPDX-License-Identifier: Apache-2.0
#include "clusters/fake/fake_cluster.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/fake/fake_program.h"
#include "clusters/plan_text.h"
#include "model/fits.h"
#include "model/job_ref.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr size_t kEndedShown = 20;

bool Reached(const JobRecord& job, WaitUntil until) {
  if (IsFinal(job.state)) return true;
  return until == WaitUntil::kStarted && job.state == JobState::kRunning;
}

bool Matches(const JobRecord& job, const JobFilter& filter) {
  if (!filter.user.empty() && job.spec.user != filter.user) return false;
  if (filter.since_us > 0 && std::max(job.spec.submitted_us, job.ended_us) < filter.since_us) return false;
  return filter.states.empty() ||
         std::find(filter.states.begin(), filter.states.end(), job.state) != filter.states.end();
}

// Leaves out all ended jobs but those that ended last.
void KeepRecent(std::vector<JobRecord>* jobs) {
  std::vector<int64_t> ends;
  for (const JobRecord& job : *jobs) {
    if (IsFinal(job.state)) ends.push_back(job.ended_us);
  }
  if (ends.size() <= kEndedShown) return;
  std::sort(ends.begin(), ends.end(), std::greater<>());
  size_t left = kEndedShown;
  const int64_t oldest = ends[kEndedShown - 1];
  std::erase_if(*jobs, [&](const JobRecord& job) {
    if (!IsFinal(job.state)) return false;
    if (job.ended_us < oldest || left == 0) return true;
    --left;
    return false;
  });
}

}  // namespace

void FakeCluster::SetJobFolder(const std::string& id, std::string dir, std::vector<LogFile> logs) {
  if (JobRecord* job = FindOne(id)) {
    job->dir = std::move(dir);
    job->logs = std::move(logs);
  }
}

Capabilities FakeCluster::GetCapabilities() const {
  return {.hold = true,
          .array = true,
          .dependencies = true,
          .local_files = true,
          .placement = true,
          .warning = true,
          .timeout_requeue = true,
          .max_nodes = 1,
          .nodes = {{machine_, {}, {}, {}}}};
}

Result<SubmitPlan> FakeCluster::Plan(const JobSpec& spec) {
  OC_TRY_VOID(ValidateSpec(spec));
  OC_TRY_VOID(CheckFits(spec.resources, machine_));
  return SubmitPlan{spec, PlanText(spec)};
}

Result<JobRecord> FakeCluster::Submit(const SubmitPlan& plan) {
  if (const std::optional<Failure> failure = std::exchange(next_failure_, std::nullopt)) {
    if (failure->done) OC_TRY_VOID(Accept(plan.spec));
    return Fail(failure->error);
  }
  return Accept(plan.spec);
}

Result<JobRecord> FakeCluster::Accept(const JobSpec& spec) {
  Settle();
  if (const JobRecord* known = FindOne(spec.id)) {
    if (known->spec == spec) return *known;
    return Fail(ErrorCode::kConflict, StrCat("there is another job '", spec.id, "'"));
  }
  JobRecord job;
  job.spec = spec;
  job.state = spec.hold ? JobState::kHeld : JobState::kQueued;
  jobs_.push_back(job);
  if (JobRecord* old = FindOne(spec.replaces)) End(old, JobState::kCancelled, -1, "replaced by " + spec.id);
  return job;
}

JobRecord* FakeCluster::FindOne(const std::string& id) {
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const JobRecord& job) { return job.spec.id == id; });
  return found == jobs_.end() ? nullptr : &*found;
}

Result<std::vector<JobRecord*>> FakeCluster::Find(const std::vector<std::string>& ids) {
  Settle();
  std::vector<JobRecord*> found;
  for (const std::string& id : ids) {
    found.push_back(FindOne(id));
    if (found.back() == nullptr) return Fail(ErrorCode::kNotFound, StrCat("there is no job '", id, "'"));
  }
  return found;
}

Result<std::vector<JobRecord>> FakeCluster::Query(const std::vector<std::string>& ids) {
  OC_TRY(found, Find(ids));
  std::vector<JobRecord> records;
  for (const JobRecord* job : found) records.push_back(*job);
  return records;
}

Result<std::vector<JobRecord>> FakeCluster::List(const JobFilter& filter) {
  Settle();
  std::vector<JobRecord> records;
  for (const JobRecord& job : jobs_) {
    if (Matches(job, filter)) records.push_back(job);
  }
  if (!filter.all && filter.states.empty() && filter.since_us == 0) KeepRecent(&records);
  return records;
}

Result<std::vector<std::string>> FakeCluster::Resolve(const std::vector<std::string>& refs) {
  std::vector<JobRefCandidate> candidates;
  for (const JobRecord& job : jobs_) candidates.push_back({job.spec.id});
  std::vector<std::string> ids;
  for (const std::string& ref : refs) {
    OC_TRY(id, ResolveJobRef(ref, candidates, [&](std::string_view of) {
             return ShellJoin(FindOne(std::string(of))->spec.command);
           }));
    ids.push_back(std::move(id));
  }
  return ids;
}

Result<void> FakeCluster::Cancel(const std::vector<std::string>& ids, const std::string& reason) {
  OC_TRY(found, Find(ids));
  for (JobRecord* job : found) End(job, JobState::kCancelled, -1, reason);
  return {};
}

Result<void> FakeCluster::Hold(const std::vector<std::string>& ids) {
  OC_TRY(found, Find(ids));
  for (const JobRecord* job : found) {
    if (job->state != JobState::kHeld && job->state != JobState::kQueued) {
      return Fail(ErrorCode::kConflict, StrCat("job '", job->spec.id, "' is ", JobStateName(job->state)));
    }
  }
  for (JobRecord* job : found) job->state = JobState::kHeld;
  return {};
}

Result<void> FakeCluster::Release(const std::vector<std::string>& ids) {
  OC_TRY(found, Find(ids));
  for (JobRecord* job : found) {
    if (job->state == JobState::kHeld) job->state = JobState::kQueued;
  }
  return {};
}

Result<void> FakeCluster::Remove(const std::vector<std::string>& ids) {
  OC_TRY(found, Find(ids));
  for (const JobRecord* job : found) {
    if (!IsFinal(job->state)) {
      return Fail(ErrorCode::kConflict, StrCat("job '", job->spec.id, "' is ", JobStateName(job->state)),
                  StrCat("overcap abort ", job->spec.id, " stops it"));
    }
  }
  std::erase_if(jobs_, [&](const JobRecord& job) {
    return std::find(ids.begin(), ids.end(), job.spec.id) != ids.end();
  });
  return {};
}

Result<bool> FakeCluster::Wait(const std::vector<std::string>& ids, WaitUntil until,
                               int64_t timeout_seconds) {
  const int64_t deadline = clock_.WallUs() + timeout_seconds * kSecond;
  while (true) {
    OC_TRY(found, Find(ids));
    if (std::all_of(found.begin(), found.end(), [&](const JobRecord* job) { return Reached(*job, until); }))
      return true;
    const int64_t next = std::min(NextEnding().value_or(deadline), deadline);
    if (clock_.WallUs() >= deadline) return false;
    clock_.Advance(next - clock_.WallUs());
  }
}

Result<std::vector<NodeInfo>> FakeCluster::Nodes() {
  Settle();
  NodeInfo node{.machine = machine_, .gpus_free = FreeGpus(), .state = "up"};
  return std::vector<NodeInfo>{node};
}

void FakeCluster::Settle() {
  while (EndDue() || StartDue()) {
  }
}

bool FakeCluster::EndDue() {
  bool any = false;
  for (JobRecord& job : jobs_) {
    if (job.state != JobState::kRunning || EndTime(job) > clock_.WallUs()) continue;
    const FakeProgram program = FakeProgramOf(job.spec.command);
    job.signal = program.signal;
    job.first_failed_rank = program.exit_status == 0 ? -1 : 0;
    End(&job, program.exit_status == 0 ? JobState::kSucceeded : JobState::kFailed, program.exit_status, "");
    any = true;
  }
  return any;
}

bool FakeCluster::StartDue() {
  bool gpus_wanted = false;  // by a job further in front; those without GPUs pass it
  for (JobRecord& job : jobs_) {
    if (job.state != JobState::kQueued || !MayStart(&job)) continue;
    if (job.state != JobState::kQueued) return true;  // ended for want of its dependency
    const int gpus = job.spec.resources.gpus;
    if (gpus > FreeGpus() || (gpus > 0 && gpus_wanted)) {
      gpus_wanted = true;
      continue;
    }
    Start(&job);
    return true;
  }
  return false;
}

bool FakeCluster::MayStart(JobRecord* job) {
  for (const Dependency& dependency : job->spec.after) {
    const JobRecord* other = FindOne(dependency.job_id);
    if (other == nullptr) continue;
    if (!IsFinal(other->state)) return false;
    if (dependency.any_end || other->state == JobState::kSucceeded) continue;
    End(job, JobState::kCancelled, -1, StrCat("job '", dependency.job_id, "' did not succeed"));
    return true;
  }
  return true;
}

void FakeCluster::Start(JobRecord* job) {
  job->state = JobState::kRunning;
  job->started_us = clock_.WallUs();
  ++job->attempt;
  for (int i = 0; i < job->spec.resources.gpus; ++i) job->gpu_indices.push_back(i);
}

void FakeCluster::End(JobRecord* job, JobState state, int exit_status, const std::string& reason) {
  if (IsFinal(job->state)) return;
  job->state = state;
  job->exit_status = exit_status;
  job->reason = reason;
  job->ended_us = clock_.WallUs();
}

int64_t FakeCluster::EndTime(const JobRecord& job) const {
  return job.started_us + FakeProgramOf(job.spec.command).seconds * kSecond;
}

std::optional<int64_t> FakeCluster::NextEnding() const {
  std::optional<int64_t> next;
  for (const JobRecord& job : jobs_) {
    if (job.state == JobState::kRunning) next = std::min(next.value_or(EndTime(job)), EndTime(job));
  }
  return next;
}

int FakeCluster::FreeGpus() const {
  int free = static_cast<int>(machine_.gpus.size());
  for (const JobRecord& job : jobs_) {
    if (job.state == JobState::kRunning) free -= job.spec.resources.gpus;
  }
  return free;
}

}  // namespace overcap
