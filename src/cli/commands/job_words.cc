// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/job_words.h"

#include <algorithm>
#include <signal.h>
#include <unistd.h>

#include "base/plain_lines.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/store_words.h"
#include "control/job_exit_status.h"
#include "control/stored/stored_jobs.h"

namespace overcap::cli {
namespace {

std::string detach_hint;  // what the signal handler prints; set before the handler is

void Detach(int) {
  (void)!write(STDERR_FILENO, detach_hint.data(), detach_hint.size());
  _exit(kStatusDetached);
}

std::string Elapsed(const JobRecord& record, int64_t now_us) {
  const int64_t until = record.ended_us > 0 ? record.ended_us : now_us;
  return FormatElapsed(until - record.started_us);
}

std::string EndText(const JobRecord& record, int64_t now_us) {
  std::string text(JobStateName(record.state));
  const std::string ending = EndingText(record);
  // How a job ends that was told to says nothing.
  const bool telling = record.state != JobState::kSucceeded && record.state != JobState::kCancelled;
  if (telling && !ending.empty()) text += ", " + ending;
  if (record.started_us > 0) text += ", after " + Elapsed(record, now_us);
  return text;
}

constexpr size_t kShortestEnd = 4;

// With zeros in front it is no end of any id, but still the same number where jobs have numbers.
bool IsOwnNumber(Cluster& cluster, const std::string& ref, const std::string& id) {
  if (ref.find_first_not_of("0123456789") != std::string::npos) return false;
  const auto numbered = cluster.Resolve({"0000000000" + ref});
  return numbered && numbered->front() == id;
}

Result<void> CheckLongEnough(Cluster& cluster, const std::string& ref, const std::string& id,
                             std::string_view verb) {
  const bool is_end = ref.size() < kShortestEnd && ref != id && id.ends_with(ref);
  if (!is_end || IsOwnNumber(cluster, ref, id)) return {};
  OC_TRY(records, cluster.Query({id}));
  return Fail(ErrorCode::kUsage,
              StrCat("'", ref, "' is too short for `", verb, "`, which takes the last ", kShortestEnd,
                     " characters of an id or more"),
              StrCat("overcap ", verb, " ", id.substr(id.rfind('_') + 1), " means ", id, ": ",
                     CommandText(records.front().spec.command)));
}

}  // namespace

Result<NamedJobs> ResolveJobs(World& world, const std::vector<std::string>& refs, std::string_view verb) {
  OC_TRY(cluster, world.GetCluster());
  OC_TRY(ids, cluster->Resolve(refs));
  for (size_t i = 0; !verb.empty() && i < refs.size(); ++i)
    OC_TRY_VOID(CheckLongEnough(*cluster, refs[i], ids[i], verb));
  // A job that was named twice is meant once.
  std::vector<std::string> unique;
  for (std::string& id : ids) {
    if (std::find(unique.begin(), unique.end(), id) == unique.end()) unique.push_back(std::move(id));
  }
  return NamedJobs{cluster, std::move(unique)};
}

Result<NamedJobs> JobsFrom(World& world, const Args& args, std::unique_ptr<Cluster>* stored) {
  if (!args.Has("--from")) return ResolveJobs(world, args.words());
  OC_TRY(opened, OpenStoredJobs(StoreBookOf(world), std::string(args.Get("--from")), world.root()));
  *stored = std::move(opened);
  OC_TRY(ids, (*stored)->Resolve(args.words()));
  return NamedJobs{stored->get(), std::move(ids)};
}

Result<std::vector<JobRecord>> QueryJobs(World& world, const std::vector<std::string>& refs) {
  OC_TRY(jobs, ResolveJobs(world, refs));
  return jobs.cluster->Query(jobs.ids);
}

Result<FilesRight> RightTo(const World& world, const Cluster& cluster, const JobRecord& record,
                           JobVerb verb) {
  return RightToFilesOf(record, HasSharedEngine(world.config(), cluster.Name()), verb);
}

OwnersRun OwnersCommand(const World& world, const Cluster& cluster, const JobRecord& record,
                        std::string_view verb, const Args& args, const std::vector<std::string>& words) {
  OwnersRun run;
  run.user = record.spec.user;
  run.variables = EngineVariables(world.config(), cluster.Name());
  run.words = {std::string(verb), "--cluster", ImpliedNameOf(world.config(), cluster.Name())};
  if (world.out().json()) run.words.emplace_back("--json");
  if (world.out().quiet()) run.words.emplace_back("--quiet");
  for (const auto& [name, value] : args.flags_) {
    run.words.push_back(name);
    if (!value.empty()) run.words.push_back(value);
  }
  run.words.insert(run.words.end(), words.begin(), words.end());
  return run;
}

Result<OwnersRunEnd> RunOwnersCommand(World& world, const OwnersRun& run) {
  OC_TRY_VOID(world.out().Flush());
  return RunAsOwner(run);
}

void PrintRecordJson(World& world, const JobRecord& record) {
  world.out().Json(RecordToJson(record, world.clock().WallUs()));
}

std::string RecordsJson(const World& world, const std::vector<JobRecord>& records) {
  const int64_t now_us = world.clock().WallUs();
  std::string json = "[";
  for (const JobRecord& record : records) {
    if (json.size() > 1) json += ",\n";
    json += RecordToJson(record, now_us);
  }
  return json + "]";
}

void PrintJobsJson(World& world, const std::vector<std::string>& refs,
                   const std::vector<JobRecord>& records) {
  if (refs.size() == 1) {
    PrintRecordJson(world, records.front());
  } else {
    world.out().Json(RecordsJson(world, records));
  }
}

std::string CommandText(const std::vector<std::string>& command) {
  constexpr int kMostShown = 200;
  constexpr size_t kMostRead = 8 * kMostShown;
  std::string line;
  for (const std::string& word : command) {
    if (line.size() > kMostRead) break;
    const bool long_word = word.size() > kMostRead;
    line += StrCat(line.empty() ? "" : " ", ShellQuote(std::string_view(word).substr(0, kMostRead)));
    if (long_word) break;
  }
  return line.size() <= kMostShown ? line : ShortenToWidth(ToUtf8(line), kMostShown);
}

std::string WaitingText(const JobRecord& record, int64_t now_us) {
  std::string text = StrCat("job '", record.spec.id, "' ", StateText(record, now_us));
  if (record.state == JobState::kHeld && record.reason.empty()) text += " until `overcap release`";
  const TaskCounts& tasks = record.tasks;
  if (record.spec.array.empty()) return text;
  return StrCat(text, ", ", tasks.succeeded + tasks.failed + tasks.lost, "/", tasks.total, " tasks");
}

std::string StateText(const JobRecord& record, int64_t now_us) {
  std::string text;
  if (IsFinal(record.state)) {
    text = EndText(record, now_us);
  } else if (record.state == JobState::kRunning) {
    text = "running for " + Elapsed(record, now_us);
  } else {
    text = record.state == JobState::kUnknown ? record.raw_state : std::string(JobStateName(record.state));
  }
  if (!record.reason.empty()) text += StrCat(" (", PlainText(record.reason), ")");
  return text;
}

Style StateStyle(JobState state) {
  switch (state) {
    case JobState::kRunning:
      return Style::kBlue;
    case JobState::kSucceeded:
      return Style::kGreen;
    case JobState::kFailed:
    case JobState::kLost:
      return Style::kRed;
    case JobState::kHeld:
    case JobState::kCancelled:
    case JobState::kPreempted:
      return Style::kYellow;
    default:
      return Style::kPlain;
  }
}

std::string QueuedText(const std::vector<std::string>& ids) {
  return StrCat(ids.size() == 1 ? "the job is queued as " : "the jobs are queued as ", Join(ids, ", "));
}

void DetachOnInterrupt(const std::string& hint) {
  detach_hint = StrCat("\n", hint, "\n");
  struct sigaction action {};
  action.sa_handler = Detach;
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace overcap::cli
