// SPDX-License-Identifier: Apache-2.0
// Retention: forgets ended jobs by age and size, then removes from the store what no job needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "snapshot/store.h"
#include "sys/clock.h"

namespace overcap {

struct GcRequest {
  int64_t age_seconds = 0;  // jobs that ended longer ago go; 0: no limit
  int64_t size_bytes =
      0;  // those that ended first go until the folders of ended jobs are this small; 0: no limit
  bool dry_run = false;
  // Where job folders stand that use the same store, those of other clusters too: what they name is kept. "":
  // only this cluster uses it.
  std::string jobs_folder = {};
};

struct EndedJob {
  std::string id;
  int64_t ended_us = 0;
  int64_t bytes = 0;  // of its folder
};

// What was removed of a job store's code.
struct StoreCollected {
  std::string at;
  CollectReport report;
  std::string skipped;  // why it was left as it is; "": it was not
};

struct GcReport {
  std::vector<EndedJob> jobs;  // that were removed, or would be
  int64_t job_bytes = 0;
  CollectReport store;  // empty in a dry run
  std::vector<StoreCollected> job_stores = {};
};

// Which of the ended jobs go. Pure.
std::vector<EndedJob> ChooseJobs(std::vector<EndedJob> ended, const GcRequest& request, int64_t now_us);

Result<GcReport> CollectGarbage(Cluster& cluster, const std::string& store_folder, const GcRequest& request,
                                const Clock& clock);

// Cluster::Query() for any number of jobs: an engine limits both the jobs in a request and the size of its
// reply.
Result<std::vector<JobRecord>> QueryInParts(Cluster& cluster, const std::vector<std::string>& ids);

// Forgets ended jobs, also in their stores. kUnavailable when a store could not be reached: then the job is
// gone, and the error says what is left.
Result<void> RemoveJobs(Cluster& cluster, const std::vector<std::string>& ids);

// Bytes of the files in a folder, those that it shares with the store (hard links) left out.
int64_t FolderBytes(const std::string& folder);

}  // namespace overcap
