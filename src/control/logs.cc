// SPDX-License-Identifier: Apache-2.0
#include "control/logs.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include "base/text.h"
#include "clusters/cluster_view.h"
#include "control/array_tasks.h"
#include "control/log_file.h"
#include "control/node_logs.h"
#include "control/others_job.h"
#include "control/stored/stored_job.h"

namespace overcap {
namespace {

constexpr size_t kChunk = 256 << 10;
constexpr int64_t kLongestPauseMs = 50;
constexpr int64_t kServerPauseMs = 500;  // where each look is a request
constexpr int64_t kNoLimit = INT64_MAX;

// One log on its way to the sink: as it is, or in whole lines with the rank in front.
class LogStream {
 public:
  LogStream(LogReader reader, int rank, bool prefixed)
      : reader_(std::move(reader)), rank_(rank), prefix_(prefixed ? StrCat("[", rank, "] ") : "") {}
  int rank() const { return rank_; }
  bool remote() const { return reader_.remote(); }

  Result<void> SeekToTail(int64_t lines) { return reader_.SeekToTail(lines, kNoLimit); }

  // Hands on all that is there; true when there was something.
  Result<bool> Pump(const LogSink& sink) {
    bool any = false;
    while (true) {
      OC_TRY(bytes, reader_.Read(kChunk));
      if (bytes.empty()) return any;
      any = true;
      if (prefix_.empty()) {
        sink(bytes);
      } else {
        Lines(bytes, sink);
      }
    }
  }

  // The last line, when it has no newline.
  void Finish(const LogSink& sink) {
    if (!line_.empty()) Emit(sink);
  }

 private:
  void Lines(std::string_view bytes, const LogSink& sink) {
    for (size_t end; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1)) {
      line_ += bytes.substr(0, end);
      Emit(sink);
    }
    line_ += bytes;
    if (line_.size() > kChunk) Emit(sink);  // a line without end must not eat the memory
  }

  void Emit(const LogSink& sink) {
    sink(StrCat(prefix_, line_, "\n"));
    line_.clear();
  }

  LogReader reader_;
  int rank_;
  std::string prefix_;
  std::string line_;
};

Result<LogStream> OpenStream(const JobRecord& record, const LogFile& log, const LogRequest& request,
                             bool prefixed) {
  OC_TRY(reader, OpenLog(record, log));
  LogStream stream(std::move(reader), log.rank, prefixed);
  if (request.tail >= 0) OC_TRY_VOID(stream.SeekToTail(request.tail));
  return stream;
}

Result<std::deque<LogStream>> OpenStreams(const JobRecord& record, const LogRequest& request) {
  OC_TRY(logs, SelectLogs(record, request));
  std::deque<LogStream> streams;
  for (const LogFile& log : logs) {
    OC_TRY(stream, OpenStream(record, log, request, logs.size() > 1));
    streams.push_back(std::move(stream));
  }
  return streams;
}

// The logs of an elastic job's nodes appear one after the other: adds those that are there now. Until the job
// has ended none is missing.
Result<void> AddNodes(const JobRecord& record, const LogRequest& request, std::deque<LogStream>* streams) {
  const auto logs = SelectLogs(record, request);
  if (!logs && logs.error().code == ErrorCode::kNotFound && !IsFinal(record.state)) return {};
  OC_TRY_VOID(logs);
  for (const LogFile& log : *logs) {
    if (std::any_of(streams->begin(), streams->end(),
                    [&](const LogStream& stream) { return stream.rank() == log.rank; }))
      continue;
    OC_TRY(stream, OpenStream(record, log, request, request.ranks.size() != 1));
    streams->push_back(std::move(stream));
  }
  return {};
}

Result<bool> PumpAll(std::deque<LogStream>& streams, const LogSink& sink) {
  bool any = false;
  for (LogStream& stream : streams) {
    OC_TRY(some, stream.Pump(sink));
    any = any || some;
  }
  return any;
}

Result<void> Drain(std::deque<LogStream>& streams, const LogSink& sink) {
  OC_TRY_VOID(PumpAll(streams, sink));
  for (LogStream& stream : streams) stream.Finish(sink);
  return {};
}

Result<JobRecord> QueryOne(Cluster& cluster, const std::string& id) {
  OC_TRY(records, cluster.QueryRecent({id}, kWatchAgeUs));
  return std::move(records.front());
}

bool Wanted(const LogFile& log, int attempt, const std::vector<int>& ranks) {
  return log.attempt == attempt &&
         (ranks.empty() || std::find(ranks.begin(), ranks.end(), log.rank) != ranks.end());
}

std::string WhatThereIs(const JobRecord& record) {
  if (record.dir.empty() && record.spec.command.empty())
    return StrCat(
        "it was not submitted by Overcap; the cluster knows where it writes (Slurm: scontrol show job ",
        record.spec.id, ")");
  if (record.attempt == 0) return StrCat("it is ", JobStateName(record.state), " and has not started yet");
  if (!record.spec.array.empty()) {
    return StrCat("its tasks are ", FormatArraySpec(record.spec.array), "; overcap query --tasks ",
                  record.spec.id, " shows what became of each");
  }
  if (record.spec.resources.elastic()) {
    return StrCat("it has a log for each node, from 0 on, and attempts 1 to ", record.attempt);
  }
  return StrCat("it has ranks 0 to ", record.spec.resources.world_size() - 1, " and attempts 1 to ",
                record.attempt);
}

std::vector<LogFile> AttemptLogs(const JobRecord& record, const LogRequest& request) {
  const int attempt = request.attempt > 0 ? request.attempt : record.attempt;
  std::vector<LogFile> logs;
  JobRecord whole;
  const bool elastic = record.spec.resources.elastic();
  if (elastic) whole = record, AddNodeLogs(&whole);
  for (const LogFile& log : elastic ? whole.logs : record.logs) {
    if (Wanted(log, attempt, request.ranks)) logs.push_back(log);
  }
  return logs;
}

bool IsUnknownTask(const JobRecord& record, const LogRequest& request) {
  return request.task >= 0 && record.spec.array.PositionOf(request.task) < 0;
}

// None when that try of the task has not begun.
std::vector<LogFile> TaskLogs(const JobRecord& record, const LogRequest& request) {
  const int task = request.task >= 0 ? request.task : DefaultTask(record);
  BringTries(record, task);
  const int last = LastTry(record, task);
  LogFile log{request.attempt > 0 ? request.attempt : last, 0, task, ""};
  std::vector<LogFile> logs;
  if (log.attempt == 0 || log.attempt > last) return logs;
  for (; log.rank < record.spec.resources.world_size(); ++log.rank) {
    log.path = TaskLogPath(record, task, log.attempt, log.rank);
    if (Wanted(log, log.attempt, request.ranks)) logs.push_back(log);
  }
  return logs;
}

// The attempt to show now, of a task of an array its try; 0: none is there yet.
int AttemptNow(const JobRecord& record, const LogRequest& request) {
  if (!record.spec.array.empty()) BringTries(record, request.task);
  const int last = record.spec.array.empty() ? record.attempt : LastTry(record, request.task);
  if (request.attempt == 0) return last;
  return last >= request.attempt ? request.attempt : 0;
}

}  // namespace

void SleepFor(int64_t milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

Result<LogReader> OpenLog(const JobRecord& record, const LogFile& log) {
  OC_TRY(store, LogStoreOf(record));
  return LogReader(log.path, store, store == nullptr ? "" : StoredKeyOf(record, log.path));
}

Result<std::vector<LogFile>> SelectLogs(const JobRecord& record, const LogRequest& request) {
  OC_TRY_VOID(CheckNotOthers(record));
  std::vector<LogFile> logs;
  if (!IsUnknownTask(record, request))
    logs = record.spec.array.empty() ? AttemptLogs(record, request) : TaskLogs(record, request);
  std::sort(logs.begin(), logs.end(), [](const LogFile& a, const LogFile& b) { return a.rank < b.rank; });
  if (logs.empty() || logs.size() < request.ranks.size()) {
    return Fail(ErrorCode::kNotFound, StrCat("job '", record.spec.id, "' has no such log"),
                WhatThereIs(record));
  }
  return logs;
}

Result<void> PrintLogs(const JobRecord& record, const LogRequest& request, const LogSink& sink) {
  OC_TRY(streams, OpenStreams(record, request));
  // One rank after the other: nothing says how their lines lay in time.
  for (LogStream& stream : streams) {
    OC_TRY_VOID(stream.Pump(sink));
    stream.Finish(sink);
  }
  return {};
}

Result<JobRecord> FollowLogs(Cluster& cluster, const std::string& id, const LogRequest& request,
                             const LogSink& sink, const std::function<void(int attempt)>& on_attempt,
                             const LogPause& pause, const LogWaiting& waiting) {
  LogRequest wanted = request;
  std::deque<LogStream> streams;
  int shown = 0;  // the attempt (of a task: the try) that the streams are of
  int64_t pause_ms = 1;
  while (true) {
    OC_TRY(record, QueryOne(cluster, id));
    if (wanted.task < 0 && record.attempt > 0) wanted.task = DefaultTask(record);
    const int attempt = AttemptNow(record, wanted);
    const bool named = request.task >= 0 || request.attempt > 0;
    const bool never = named && shown == 0 && record.attempt > 0 && IsFinal(record.state);
    if (attempt > shown || never || IsUnknownTask(record, wanted)) {
      OC_TRY_VOID(Drain(streams, sink));
      streams.clear();
      if (!record.spec.resources.elastic()) {
        OC_TRY(opened, OpenStreams(record, wanted));
        streams = std::move(opened);
      }
      if (shown > 0) on_attempt(attempt);
      shown = attempt;
    }
    if (record.spec.resources.elastic() && (attempt > 0 || never))
      OC_TRY_VOID(AddNodes(record, wanted, &streams));
    OC_TRY(any, PumpAll(streams, sink));
    if (IsFinal(record.state)) {
      OC_TRY_VOID(Drain(streams, sink));
      return record;
    }
    sink("");  // what was shown should be seen before the pause
    if (waiting && record.state != JobState::kRunning) waiting(record);
    if (record.attempt == 0) {
      OC_TRY_VOID(cluster.Wait({id}, WaitUntil::kStarted, waiting ? 1 : 60));
      continue;
    }
    pause_ms = any ? 1 : std::min(kLongestPauseMs, pause_ms * 2);
    const bool remote =
        std::any_of(streams.begin(), streams.end(), [](const LogStream& stream) { return stream.remote(); });
    pause(remote ? kServerPauseMs : pause_ms);
  }
}

}  // namespace overcap
