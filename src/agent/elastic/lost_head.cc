// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/lost_head.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <unistd.h>

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
  const auto first = PosixFiles().CreateExclusive(lost.attempt_folder + "/head-lost", lost.head + "\n");
  if (!first && first.error().code == ErrorCode::kConflict) return {};
  OC_TRY_VOID(first);
  const bool again = spec.requeue && !files.Exists(job_dir + "/cancel.json");
  const int64_t now_us = PosixClock().WallUs();
  const Ending ending{JobState::kLost, -1, 0, -1, StrCat("its first node, '", lost.head, "', was lost")};
  const std::string lines = StrCat(again ? RequeueLine(now_us, kWhy) : "", EndLine(now_us, ending));
  OC_TRY_VOID(WriteInItsPlace(lost.attempt_folder + "/agent-0.jsonl", lines));
  const std::vector<std::string> tools = SlurmToolVariables(Variables::OfThisProcess());
  if (!again) return EndJob(lost, tools);
  return RequeueOnce({lost.attempt_folder + "/requeue", kWhy, lost.slurm_id, false, tools});
}

}  // namespace overcap
