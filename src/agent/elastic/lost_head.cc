// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/lost_head.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <unistd.h>

#include "agent/courier/start_courier.h"
#include "agent/slot_claim.h"
#include "agent/slurm/slurm_facts.h"
#include "agent/slurm/slurm_requeue.h"
#include "base/text.h"
#include "model/group_event.h"
#include "model/job_spec.h"
#include "sys/capture_output.h"
#include "sys/clock.h"
#include "sys/posix_files.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr std::string_view kNoLeader = "no leader of job";  // as ElasticAgent::CheckReach has it
constexpr const char* kWhy = "node failed";
constexpr std::chrono::milliseconds kScancelTimeout{20'000};
constexpr int64_t kBringUs = 150'000'000;  // stores try for 90 s

Result<void> WriteInItsPlace(const std::string& path, const std::string& lines) {
  OC_TRY(text, PosixFiles().Read(path));
  if (ParseAgentReport(text).end) return Fail(ErrorCode::kConflict, "the job's agent has told its end");
  const ReportEnd end = EndOfReport(text);
  const std::string all = StrCat(end.torn ? "\n" : "", lines);
  const Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || pwrite(file.Get(), all.data(), all.size(), static_cast<off_t>(end.offset)) < 0)
    return Fail(ErrnoError(errno, StrCat("cannot write '", path, "'")));
  (void)fdatasync(file.Get());
  return {};
}

std::string NameIn(const LostHead& lost, std::string_view file) {
  const std::string& attempt = lost.attempt_folder;
  return StrCat(attempt.substr(attempt.rfind('/') + 1), "/", file);
}

// True: it is this node that speaks. Through a store the first is who creates it there, and knows the report
// as far as it was uploaded.
Result<bool> IsFirst(const LostHead& lost) {
  const std::string mark = lost.attempt_folder + "/head-lost";
  const std::string text = StrCat(lost.head, "\n", ClaimToJson(OwnClaim()), "\n");
  PosixFiles files;
  const auto made = files.CreateExclusive(mark, text);
  if (!made && made.error().code == ErrorCode::kConflict) return false;
  OC_TRY_VOID(made);
  if (lost.courier == nullptr) return true;
  OC_TRY(there, lost.courier->Create(NameIn(lost, "head-lost"), nullptr));
  if (there != text) return false;
  OC_TRY_VOID(lost.courier->BringCancel(kBringUs));
  OC_TRY_VOID(lost.courier->Bring({NameIn(lost, "agent-0.jsonl")}, kBringUs, nullptr));
  const auto empty = files.CreateExclusive(lost.attempt_folder + "/agent-0.jsonl", "");
  if (!empty && empty.error().code != ErrorCode::kConflict) return Fail(empty.error());
  return true;
}

// Before Slurm ends this process, too.
Result<void> Upload(const LostHead& lost) {
  if (lost.courier == nullptr) return {};
  lost.courier->Track({NameIn(lost, "agent-0.jsonl")});
  const CourierRest rest = lost.courier->Drain(kDrainSeconds);
  if (rest.empty()) return {};
  return Fail(ErrorCode::kUnavailable, rest.Text());
}

Result<void> EndJob(const LostHead& lost, const std::vector<std::string>& tools) {
  SpawnRequest request;
  request.argv = {"scancel", lost.slurm_id};
  request.env = tools;
  request.cwd = "/";
  OC_TRY(answer, CaptureOutput(request, kScancelTimeout));
  if (answer.end.ok()) return {};
  return Fail(ErrorCode::kUnavailable, StrCat("scancel: ", ToUtf8(Trim(answer.output))));
}

}  // namespace

bool EndedWithoutLeader(std::string_view events) {
  bool found = false;
  for (const std::string& line : Split(events, '\n')) {
    const auto event = ParseGroupEvent(line);
    if (event && event->event == "ended") found = event->message.starts_with(kNoLeader);
  }
  return found;
}

ReportEnd EndOfReport(std::string_view text) {
  const size_t end = std::min(text.find('\0'), text.size());
  return {end, end > 0 && text[end - 1] != '\n'};
}

Result<void> SpeakForHead(const LostHead& lost) {
  const PosixFiles files;
  const std::string job_dir = lost.attempt_folder.substr(0, lost.attempt_folder.rfind('/'));
  OC_TRY(text, files.Read(job_dir + "/spec.json"));
  OC_TRY(spec, SpecFromJson(text));
  OC_TRY(first, IsFirst(lost));
  if (!first) return {};
  const bool again = spec.requeue && !files.Exists(job_dir + "/cancel.json");
  const int64_t now_us = PosixClock().WallUs();
  const Ending ending{JobState::kLost, -1, 0, -1, StrCat("its first node, '", lost.head, "', was lost")};
  const std::string lines = StrCat(again ? RequeueLine(now_us, kWhy) : "", EndLine(now_us, ending));
  OC_TRY_VOID(WriteInItsPlace(lost.attempt_folder + "/agent-0.jsonl", lines));
  OC_TRY_VOID(Upload(lost));
  const std::vector<std::string> tools = SlurmToolVariables(Variables::OfThisProcess());
  if (!again) return EndJob(lost, tools);
  return RequeueOnce({lost.attempt_folder + "/requeue", kWhy, lost.slurm_id, false, tools});
}

Result<void> CheckHead(const std::string& attempt_folder, int node, Courier* courier) {
  const auto events = PosixFiles().Read(StrCat(attempt_folder, "/node-", node, "/events.jsonl"));
  if (!events || !EndedWithoutLeader(*events)) return {};
  const Variables variables = Variables::OfThisProcess();
  return SpeakForHead({attempt_folder, std::string(variables.Get("OVERCAP_RDZV_HEAD")),
                       std::string(variables.Get("SLURM_JOB_ID")), courier});
}

}  // namespace overcap
