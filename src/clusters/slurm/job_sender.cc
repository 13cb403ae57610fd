// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/job_sender.h"

#include <algorithm>
#include <cstdio>

#include "base/json_scan.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "clusters/slurm/tool_variables.h"
#include "sys/posix_files.h"
#include "sys/variables.h"

namespace overcap {
namespace {

using std::chrono::seconds;

constexpr seconds kSubmitTime{60};  // sbatch itself tries again for a while when the controller is busy
constexpr seconds kAccountTime{20};
constexpr int64_t kExpectedUs = 10'000'000;      // one that waits longer has too little time left
constexpr int64_t kClockSlackUs = 3600'000'000;  // between this machine and the database

// Why there is no answer in what it printed.
ToolFailure FailureOf(ToolRun* run, const Error& no_reply, const ToolContext& named) {
  const auto answer = run->Finish();
  if (!answer) return {answer.error(), true};
  if (answer->end.ok()) return {no_reply, true};
  return ReadToolFailure("sbatch", answer->err, answer->end.exit_status, named);
}

}  // namespace

// What is here is in Slurm's spool and in the job's own environment: no values that the job's private blob
// keeps.
std::vector<std::string> JobSender::Environment() const {
  const Variables given = Variables::OfThisProcess();
  Variables variables;
  for (const std::string& entry : given.entries()) {
    const std::string name = entry.substr(0, entry.find('='));
    if (IsBatchVariable(name)) variables.Set(name, entry.substr(std::min(name.size() + 1, entry.size())));
  }
  variables.Set("OVERCAP_HOME", context_->settings().root);
  return variables.entries();
}

Result<SlurmHandle> JobSender::Send(const JobSpec& spec, bool made, const SbatchPlan& plan,
                                    const ToolContext& named) {
  SlurmJobFolder folder(context_->JobFolder(spec.id));
  OC_TRY(lock, folder.LockSending());
  if (made) return SendNew(spec, plan, named, &folder);
  if (const auto handle = folder.Handle()) return *handle;
  // An earlier call of ours had no answer.
  OC_TRY(found, Find(spec, &folder));
  if (found) return *found;
  return SendNew(spec, plan, named, &folder);
}

Result<std::unique_ptr<ToolRun>> JobSender::Start(const std::vector<std::string>& argv) const {
  OC_TRY(program, context_->Program(argv[0]));
  SpawnRequest request;
  request.program = std::move(program);
  request.argv = argv;
  request.env = Environment();
  return context_->StartProgram(std::move(request), kSubmitTime);
}

void JobSender::Expect(std::vector<std::string> argv) {
  auto run = Start(argv);
  expected_run_ = run ? *std::move(run) : nullptr;
  expected_ = std::move(argv);
  expected_us_ = context_->clock().MonotonicUs();
}

Result<SlurmHandle> JobSender::SendNew(const JobSpec& spec, const SbatchPlan& plan, const ToolContext& named,
                                       SlurmJobFolder* folder) {
  std::unique_ptr<ToolRun> run = std::move(expected_run_);
  const bool fresh = context_->clock().MonotonicUs() - expected_us_ < kExpectedUs;
  if (!run || !fresh || expected_ != plan.argv) {
    run.reset();
    auto started = Start(plan.argv);
    if (!started) {
      Discard(folder);
      return Fail(std::move(started).error());
    }
    run = *std::move(started);
  }
  run->Give(plan.script);
  const Result<void> durable = folder->MakeDurable();
  const auto line = run->Line();
  const auto reply = line ? ParseSubmitReply(*line) : Fail(line.error());
  // Slurm has it: how its program ends does not matter any more.
  if (!reply) return AfterFailure(spec, FailureOf(run.get(), reply.error(), named), folder);
  run->Leave();
  OC_TRY(handle, Keep(reply->job_id, spec, folder));
  if (!durable) return Fail(ErrorCode::kUnavailable, durable.error().message, durable.error().hint);
  return handle;
}

Result<SlurmHandle> JobSender::Keep(int64_t slurm_id, const JobSpec& spec, SlurmJobFolder* folder) {
  SlurmHandle ours{context_->settings().name, slurm_id, "submit", context_->clock().WallUs()};
  ours.slurm_id = AgreeInStore(slurm_id, spec);
  auto handle = folder->WriteHandle(ours);
  // Slurm has it: the agent or a later look will write it down.
  if (!handle) return Fail(ErrorCode::kUnavailable, handle.error().message, handle.error().hint);
  // Somebody else has sent it too, and was first: theirs runs.
  if (handle->slurm_id != slurm_id) (void)context_->Call({"scancel", StrCat(slurm_id)}, kAccountTime);
  return handle;
}

// Which of Slurm's jobs it is: of a job through a store the one that its store names, if another was first.
// When the store does not answer the agent will settle it.
int64_t JobSender::AgreeInStore(int64_t slurm_id, const JobSpec& spec) const {
  if (spec.store.empty() || !context_->settings().depot) return slurm_id;
  JsonWriter text;
  text.BeginObject().Field("driver", "slurm").Field("cluster", context_->settings().name);
  text.Field("slurm_id", slurm_id).Field("made_by", "submit").EndObject();
  const auto there = context_->settings().depot->Create(spec, "handle.json", text.Text() + "\n");
  return there ? ParseInt(JsonMember(*there, "slurm_id")).value_or(slurm_id) : slurm_id;
}

Result<SlurmHandle> JobSender::AfterFailure(const JobSpec& spec, const ToolFailure& failure,
                                            SlurmJobFolder* folder) {
  if (failure.maybe_done) {
    auto found = Find(spec, folder);
    if (found && *found) return **found;
    const bool sure = found && failure.error.code != ErrorCode::kUnavailable;
    if (!sure) {
      return Fail(ErrorCode::kUnavailable,
                  StrCat("nobody knows yet whether job '", spec.id, "' was taken: ", failure.error.message),
                  failure.error.hint);
    }
  }
  Discard(folder);
  return Fail(failure.error);
}

// An agent may have come meanwhile: then it stays.
void JobSender::Discard(SlurmJobFolder* folder) {
  if (!folder->Handle()) (void)PosixFiles().RemoveTree(folder->path());
}

Result<std::optional<SlurmHandle>> JobSender::Find(const JobSpec& spec, SlurmJobFolder* folder) {
  if (const auto handle = folder->Handle()) return handle;
  OC_TRY(rows, queue_->Look());
  int64_t found = 0;
  for (const SqueueJob& row : rows) {
    if (IdOfSlurmComment(row.comment) != spec.id) continue;
    const int64_t number = row.array_job_id > 0 ? row.array_job_id : row.job_id;
    found = found == 0 ? number : std::min(found, number);
  }
  if (found == 0) {
    OC_TRY(account, FindInAccounts(spec));
    found = account.value_or(0);
  }
  if (found == 0) return std::optional<SlurmHandle>();
  OC_TRY(handle, Keep(found, spec, folder));
  return std::optional<SlurmHandle>(handle);
}

// Where no accounting is kept the queue has said it all.
Result<std::optional<int64_t>> JobSender::FindInAccounts(const JobSpec& spec) {
  char mark[24];
  std::snprintf(mark, sizeof mark, "m%016llx", static_cast<unsigned long long>(context_->random().Next()));
  const SacctQuery query{{}, spec.submitted_us - kClockSlackUs, queue_->user()};
  const auto text = context_->Ask(SacctCommand(query, mark), kAccountTime);
  if (!text) return std::optional<int64_t>();
  OC_TRY(rows, ParseSacct(*text, mark));
  for (const SacctJob& row : rows) {
    if (IdOfSlurmComment(row.comment) == spec.id)
      return std::optional<int64_t>(row.array_job_id > 0 ? row.array_job_id : row.job_id);
  }
  return std::optional<int64_t>();
}

}  // namespace overcap
