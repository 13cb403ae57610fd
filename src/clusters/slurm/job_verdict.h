// SPDX-License-Identifier: Apache-2.0
// Where a job stands, from all that its folder and Slurm say: the table of docs/formats/slurm-job.md. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clusters/slurm/job_evidence.h"
#include "clusters/slurm/sacct_text.h"
#include "clusters/slurm/squeue_text.h"
#include "model/job_record.h"

namespace overcap {

// What Slurm says of one job.
struct SlurmSight {
  std::vector<const SqueueJob*> rows = {};  // of the queue; an array may have many
  bool asked = false;                       // the queue is known, maybe from before
  int64_t taken_us = 0;                     // when it was asked for
  std::string stale = {};                   // why it could not be asked again; "": it could
  enum class Accounting { kNotAsked, kAway, kAsked } accounting = Accounting::kNotAsked;
  std::vector<SacctJob> accounts = {};  // kAsked: what sacct knows of it; empty too where none is kept
};

struct Verdict {
  JobRecord record;
  bool ask_accounting = false;  // the job seems to be over, and only sacct may know how
};

Verdict JudgeJob(const JobEvidence& evidence, const SlurmSight& sight, int64_t now_us);

// A job that has no folder here.
JobRecord ForeignRecord(const SqueueJob& row, const std::string& cluster);
JobRecord ForeignRecord(const SacctJob& row, const std::string& cluster);

// Parts of the judgement that plain jobs and arrays share.
constexpr int64_t kSilentUs = 180'000'000;  // of an agent that must be dead
constexpr int64_t kSettleUs = 5'000'000;    // until its last line has come through a file system
bool ReportBegan(const AttemptReport& report);
bool ReportLives(const AttemptReport& report, int64_t now_us);  // began, has not ended, is not silent
// Sent after the queue was read, or so lately that Slurm may not have it yet.
bool IsYoung(const JobEvidence& evidence, const SlurmSight& sight);
// How it ended, after somebody wished its end.
Ending CancelledEnding(const JobEvidence& evidence, Ending ending, int64_t ended_us);
// What is final in a record can only be what IsFinal() says.
Ending FinalEnding(Ending ending);
Verdict JudgeArray(const JobEvidence& evidence, const SlurmSight& sight, int64_t now_us);

}  // namespace overcap
