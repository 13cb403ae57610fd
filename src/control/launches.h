// SPDX-License-Identifier: Apache-2.0
// The launches that have left a folder: which there are, how they ended, what their ranks wrote.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/clock.h"

namespace overcap {

struct LaunchRecord {
  std::string id;
  std::string folder;
  std::vector<std::string> command;
  std::string launcher, scheduler, job_id;
  int world_size = 0;
  int64_t started_us = 0, ended_us = 0;  // ended_us 0: it runs, or was killed
  bool ended = false;
  int exit_status = 0;
  int attempts = 0;
  std::string message;  // of the last attempt
};

// By id, that is by time. Folders that hold no launch are left out.
Result<std::vector<LaunchRecord>> ListLaunches(const std::string& root);

// `ref` is an id, its last characters, "latest", or the folder of a launch. kNotFound, kConflict.
Result<LaunchRecord> FindLaunch(const std::string& root, const std::string& ref);

struct LaunchLogRequest {
  std::vector<int> ranks;  // empty: all
  int attempt = 0;         // 0: the last
  bool times = false;
};

// One rank without times byte for byte; else line by line, several ranks in the order of time, each line with
// its rank and, if asked, its time before it.
Result<std::string> LaunchLogText(const LaunchRecord& launch, const LaunchLogRequest& request);

struct OldLaunches {
  std::vector<std::string> ids;
  int64_t bytes = 0;
};
// Removes launches that ended (or were last heard of) longer ago; with `dry_run` only says which.
Result<OldLaunches> RemoveOldLaunches(const std::string& root, int64_t age_seconds, bool dry_run,
                                      const Clock& clock);

}  // namespace overcap
