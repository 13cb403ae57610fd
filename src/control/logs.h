// SPDX-License-Identifier: Apache-2.0
// Shows the logs of a job, once or as they grow.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "control/log_file.h"

namespace overcap {

struct LogRequest {
  std::vector<int> ranks = {0};  // empty: all
  int attempt = 0;    // 0: the last one; when following also those that come. Arrays: the task's try
  int task = -1;      // arrays: one task; -1: the one that failed first, else the first
  int64_t tail = -1;  // so many last lines; -1: all
};

// Where the bytes go. With several ranks each line begins with "[rank] ". Lines of a rank are never torn
// then.
using LogSink = std::function<void(std::string_view bytes)>;

// The job's own log files that the request means, by rank. kNotFound says what there is instead.
Result<std::vector<LogFile>> SelectLogs(const JobRecord& record, const LogRequest& request);

// The log where it is: in the job's folder, or in its store.
Result<LogReader> OpenLog(const JobRecord& record, const LogFile& log);

// What is in the logs now.
Result<void> PrintLogs(const JobRecord& record, const LogRequest& request, const LogSink& sink);

// How FollowLogs passes time between two looks; a test gives its own.
using LogPause = std::function<void(int64_t milliseconds)>;
void SleepFor(int64_t milliseconds);

// Told now and then while the job does not run, so that a person can be told why.
using LogWaiting = std::function<void(const JobRecord& record)>;

// The same, then what is added, until the job has ended and all its output was shown. Returns its last
// record. `on_attempt` is told when another attempt begins.
Result<JobRecord> FollowLogs(Cluster& cluster, const std::string& id, const LogRequest& request,
                             const LogSink& sink, const std::function<void(int attempt)>& on_attempt,
                             const LogPause& pause = SleepFor, const LogWaiting& waiting = {});

}  // namespace overcap
