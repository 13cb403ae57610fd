// SPDX-License-Identifier: Apache-2.0
#include "control/logs.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include "base/text.h"
#include "control/log_file.h"

namespace overcap {
namespace {

constexpr size_t kChunk = 256 << 10;
constexpr int64_t kLongestPauseMs = 50;
constexpr int64_t kNoLimit = INT64_MAX;

// One log on its way to the sink: as it is, or in whole lines with the rank in front.
class LogStream {
 public:
  LogStream(const LogFile& log, bool prefixed)
      : reader_(log.path), prefix_(prefixed ? StrCat("[", log.rank, "] ") : "") {}

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
  std::string prefix_;
  std::string line_;
};

Result<std::deque<LogStream>> OpenStreams(const JobRecord& record, const LogRequest& request) {
  OC_TRY(logs, SelectLogs(record, request));
  const bool prefixed = logs.size() > 1;
  std::deque<LogStream> streams;
  for (const LogFile& log : logs) {
    streams.emplace_back(log, prefixed);
    if (request.tail >= 0) OC_TRY_VOID(streams.back().SeekToTail(request.tail));
  }
  return streams;
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
  OC_TRY(records, cluster.Query({id}));
  return std::move(records.front());
}

bool Wanted(const LogFile& log, int attempt, int task, const std::vector<int>& ranks) {
  return log.attempt == attempt && log.task == task &&
         (ranks.empty() || std::find(ranks.begin(), ranks.end(), log.rank) != ranks.end());
}

// Arrays: the first task of which there is a log, unless one was asked for.
int TaskOf(const JobRecord& record, const LogRequest& request) {
  if (request.task >= 0 || record.spec.array.empty()) return request.task;
  int first = -1;
  for (const LogFile& log : record.logs) {
    if (log.task >= 0 && (first < 0 || log.task < first)) first = log.task;
  }
  return first;
}

// Arrays keep the log of a task in the attempt in which it ran, which need not be the last.
int AttemptOf(const JobRecord& record, const LogRequest& request, int task) {
  if (request.attempt > 0) return request.attempt;
  if (task < 0) return record.attempt;
  int last = 0;
  for (const LogFile& log : record.logs) {
    if (log.task == task) last = std::max(last, log.attempt);
  }
  return last;
}

std::string WhatThereIs(const JobRecord& record) {
  if (record.attempt == 0) return StrCat("it is ", JobStateName(record.state), " and has not started yet");
  if (!record.spec.array.empty()) {
    return StrCat("its tasks are ", FormatArraySpec(record.spec.array), ", its attempts 1 to ",
                  record.attempt);
  }
  return StrCat("it has ranks 0 to ", record.spec.resources.world_size() - 1, " and attempts 1 to ",
                record.attempt);
}

}  // namespace

void SleepFor(int64_t milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

Result<std::vector<LogFile>> SelectLogs(const JobRecord& record, const LogRequest& request) {
  const int task = TaskOf(record, request);
  const int attempt = AttemptOf(record, request, task);
  std::vector<LogFile> logs;
  for (const LogFile& log : record.logs) {
    if (Wanted(log, attempt, task, request.ranks)) logs.push_back(log);
  }
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
                             const LogPause& pause) {
  std::deque<LogStream> streams;
  int shown = 0;  // the attempt that the streams are of
  int64_t pause_ms = 1;
  while (true) {
    OC_TRY(record, QueryOne(cluster, id));
    const int attempt = request.attempt > 0 ? request.attempt : record.attempt;
    if (attempt > shown && record.attempt >= attempt) {
      OC_TRY_VOID(Drain(streams, sink));
      auto opened = OpenStreams(record, request);
      if (opened) {
        streams = std::move(*opened);
        if (shown > 0) on_attempt(attempt);
        shown = attempt;
      } else if (record.spec.array.empty() || IsFinal(record.state)) {
        return Fail(std::move(opened).error());
      }  // else: no task has a log yet
    }
    OC_TRY(any, PumpAll(streams, sink));
    if (IsFinal(record.state)) {
      OC_TRY_VOID(Drain(streams, sink));
      return record;
    }
    sink("");  // what was shown should be seen before the pause
    if (record.attempt == 0) {
      OC_TRY_VOID(cluster.Wait({id}, WaitUntil::kStarted, 60));
      continue;
    }
    pause_ms = any ? 1 : std::min(kLongestPauseMs, pause_ms * 2);
    pause(pause_ms);
  }
}

}  // namespace overcap
