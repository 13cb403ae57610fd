// SPDX-License-Identifier: Apache-2.0
#include "control/launches.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fcntl.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "control/gc.h"
#include "launch/logs/timed_lines.h"
#include "model/json_fields.h"
#include "sys/fresh_open.h"
#include "sys/log_bound.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr size_t kReadBytes = 1 << 20;

Result<LaunchRecord> ReadFacts(const std::string& folder) {
  OC_TRY(text, PosixFiles().Read(folder + "/launch.json"));
  OC_TRY(json, ParseJsonObject(text, "launch.json"));
  LaunchRecord record;
  record.folder = folder;
  FieldReader reader(json, "launch.json");
  reader.Read("id", &record.id);
  reader.Read("command", &record.command);
  reader.Read("launcher", &record.launcher);
  reader.Read("scheduler", &record.scheduler);
  reader.Read("job_id", &record.job_id);
  reader.Read("world_size", &record.world_size);
  reader.Read("started_us", &record.started_us);
  OC_TRY_VOID(reader.Check());
  return record;
}

// A launch that runs or was killed has no result: then the record stays as it is.
void AddResult(LaunchRecord* record) {
  const auto text = PosixFiles().Read(record->folder + "/result.json");
  if (!text) return;
  const auto json = ParseJsonObject(*text, "result.json");
  if (!json) return;
  FieldReader reader(*json, "result.json");
  reader.Read("exit_status", &record->exit_status);
  const nlohmann::json* attempts = reader.Array("attempts");
  if (!reader.Check() || attempts == nullptr || attempts->empty()) return;
  record->ended = true;
  record->attempts = static_cast<int>(attempts->size());
  FieldReader last(attempts->back(), "result.json");
  last.Read("message", &record->message);
  last.Read("ended_us", &record->ended_us);
}

Result<LaunchRecord> ReadLaunch(const std::string& folder) {
  OC_TRY(record, ReadFacts(folder));
  AddResult(&record);
  return record;
}

std::string FolderOf(const std::string& root) {
  return root + "/launches";
}

int LastAttempt(const std::string& folder) {
  int last = 0;
  for (const std::string& name : PosixFiles().List(folder).value_or(std::vector<std::string>())) {
    if (!name.starts_with("attempt-")) continue;
    last = std::max(last, static_cast<int>(ParseInt(name.substr(8)).value_or(0)));
  }
  return last;
}

std::vector<int> AllRanks(const std::string& folder) {
  std::vector<int> ranks;
  for (const std::string& name : PosixFiles().List(folder).value_or(std::vector<std::string>())) {
    if (!name.starts_with("rank-") || !name.ends_with(".log")) continue;
    if (const auto rank = ParseInt(name.substr(5, name.size() - 9))) ranks.push_back(static_cast<int>(*rank));
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string LineText(const TimedLine& line, bool times, bool rank) {
  std::string text;
  if (times) text += line.time_us == 0 ? "-  " : FormatTimeUtc(line.time_us) + "  ";
  if (rank) text += StrCat("[", line.rank, "] ");
  text += line.text;
  text += '\n';
  return text;
}

// When it was last heard of: its end, else the last change of its logs.
int64_t LastHeardUs(const LaunchRecord& record) {
  if (record.ended) return record.ended_us;
  int64_t last = record.started_us;
  const std::string attempt = StrCat(record.folder, "/attempt-", LastAttempt(record.folder));
  for (const std::string& name : PosixFiles().List(attempt).value_or(std::vector<std::string>())) {
    struct stat status {};
    if (stat((attempt + "/" + name).c_str(), &status) != 0) continue;
    last = std::max<int64_t>(last, int64_t{status.st_mtime} * 1'000'000);
  }
  return last;
}

}  // namespace

Result<std::vector<LaunchRecord>> ListLaunches(const std::string& root) {
  std::vector<LaunchRecord> records;
  const std::string folder = FolderOf(root);
  if (!PosixFiles().Exists(folder)) return records;
  OC_TRY(names, PosixFiles().List(folder));
  for (const std::string& name : names) {
    if (name == "latest") continue;
    if (auto record = ReadLaunch(folder + "/" + name)) records.push_back(std::move(*record));
  }
  std::ranges::stable_sort(records, {}, &LaunchRecord::started_us);
  return records;
}

Result<LaunchRecord> FindLaunch(const std::string& root, const std::string& ref) {
  if (ref.find('/') != ref.npos) return ReadLaunch(ref);
  OC_TRY(records, ListLaunches(root));
  if (records.empty())
    return Fail(ErrorCode::kNotFound, "no launch has left a log yet", "overcap launch CMD...");
  if (ref == "latest") return records.back();
  std::vector<std::string> ids;
  const LaunchRecord* found = nullptr;
  for (const LaunchRecord& record : records) {
    if (!record.id.ends_with(ref)) continue;
    ids.push_back(record.id);
    found = &record;
  }
  if (ids.size() == 1) return *found;
  if (ids.empty())
    return Fail(ErrorCode::kNotFound, StrCat("there is no launch '", ref, "'"), "overcap launches");
  return Fail(ErrorCode::kConflict, StrCat("'", ref, "' is the end of several launches"), Join(ids, ", "));
}

namespace {

// A stretch of a log without holes, at its place in the file. One that begins with a marker tells what the
// log has lost before it.
struct Stretch {
  int64_t begin = 0;
  std::string text;
};

Result<std::deque<Stretch>> ReadStretches(const std::string& path) {
  const Fd file = OpenFresh(AT_FDCWD, path, O_RDONLY);
  if (!file) return Fail(ErrnoError(errno, StrCat("cannot open log '", path, "'")));
  std::deque<Stretch> stretches(1);
  for (int64_t at = 0;;) {
    LogPart part;
    const int error = ReadLogPart(file.Get(), at, kReadBytes, &part);
    if (error != 0) return Fail(ErrnoError(error, StrCat("cannot read log '", path, "'")));
    if (part.next == at) return stretches;
    if (part.dropped > 0) {
      std::string& before = stretches.back().text;
      if (!before.empty() && before.back() != '\n') before += '\n';
      const std::string marker = part.Marker(at);
      stretches.push_back({at + part.dropped - static_cast<int64_t>(marker.size()), marker});
    }
    stretches.back().text += part.bytes;
    at = part.next;
  }
}

}  // namespace

Result<std::string> LaunchLogText(const LaunchRecord& launch, const LaunchLogRequest& request) {
  const int attempt = request.attempt > 0 ? request.attempt : LastAttempt(launch.folder);
  const std::string folder = StrCat(launch.folder, "/attempt-", attempt);
  const std::vector<int> ranks = request.ranks.empty() ? AllRanks(folder) : request.ranks;
  std::vector<std::deque<Stretch>> logs;
  std::vector<std::vector<TimedLine>> lines;
  logs.reserve(ranks.size());
  for (const int rank : ranks) {
    auto log = ReadStretches(StrCat(folder, "/rank-", rank, ".log"));
    if (!log) {
      return Fail(ErrorCode::kNotFound,
                  StrCat("launch ", launch.id, " has no log of rank ", rank, " in attempt ", attempt),
                  StrCat("ls ", ShellQuote(launch.folder)));
    }
    logs.push_back(std::move(*log));
    const auto times = PosixFiles().Read(StrCat(folder, "/rank-", rank, ".times"));
    lines.emplace_back();
    for (const Stretch& stretch : logs.back()) {
      const auto some = LinesOf(rank, stretch.text, times ? *times : "", stretch.begin);
      lines.back().insert(lines.back().end(), some.begin(), some.end());
    }
  }
  std::string text;
  if (ranks.size() == 1 && !request.times) {
    for (const Stretch& stretch : logs[0]) text += stretch.text;
    return text;
  }
  for (const TimedLine& line : InOrderOfTime(std::move(lines))) {
    text += LineText(line, request.times, ranks.size() > 1);
  }
  return text;
}

Result<OldLaunches> RemoveOldLaunches(const std::string& root, int64_t age_seconds, bool dry_run,
                                      const Clock& clock) {
  OldLaunches old;
  if (age_seconds == 0) return old;
  OC_TRY(records, ListLaunches(root));
  const int64_t limit = clock.WallUs() - age_seconds * 1'000'000;
  for (const LaunchRecord& record : records) {
    if (LastHeardUs(record) >= limit) continue;
    old.ids.push_back(record.id);
    old.bytes += FolderBytes(record.folder);
    if (!dry_run) OC_TRY_VOID(PosixFiles().RemoveTree(record.folder));
  }
  return old;
}

}  // namespace overcap
