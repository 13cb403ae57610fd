// SPDX-License-Identifier: Apache-2.0
// jobs/<id>/ of a job on Slurm (docs/formats/slurm-job.md): what is written there and read back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/slurm/job_evidence.h"
#include "model/job_record.h"
#include "sys/fd.h"
#include "sys/strangers_files.h"

namespace overcap {

class SlurmJobFolder {
 public:
  explicit SlurmJobFolder(std::string path) : path_(std::move(path)), stranger_(StrangerOf(path_)) {}
  const std::string& path() const { return path_; }
  // Who has made the folder where that is another user: then nothing is written, and it is read without
  // following links, bounded (docs/formats/slurm-job.md).
  const std::optional<uid_t>& stranger() const { return stranger_; }

  bool Exists() const;
  Result<JobSpec> Spec() const;  // kNotFound when there is no such job
  // nullopt: not there or not readable.
  std::optional<SlurmHandle> Handle() const;
  std::optional<CancelWish> Cancel() const;
  std::optional<HoldAct> Hold() const;
  // The last record of a job that has ended, with its whole spec.
  std::optional<JobRecord> Ended(const JobSpec& spec) const;
  // When the first task of an array began; 0: it has not, or that is not known.
  int64_t ArrayBeganUs() const;
  // All that it knows; `spec` has been read.
  JobEvidence Evidence(JobSpec spec) const;

  // Makes the folder with its spec and its script. True: made now; false: it was there with the same spec.
  // kConflict: with another one.
  Result<bool> Make(const JobSpec& spec, std::string_view script);
  // Whether another call made it meanwhile is told by the handle that comes back: the one that counts.
  Result<SlurmHandle> WriteHandle(const SlurmHandle& handle);
  // Kept while the job is sent; others see that. kUnavailable: somebody else is sending it at this moment.
  Result<Fd> LockSending() const;
  Result<void> WriteCancel(const CancelWish& wish);  // the first one stays
  Result<void> WriteHold(const HoldAct& act);
  Result<void> WriteEnded(const JobRecord& record, int64_t now_us);
  // The spec and the names that lead to it survive a power cut afterwards.
  Result<void> MakeDurable() const;

 private:
  std::optional<std::string> Read(std::string_view name) const;
  Result<std::string> ReadPath(const std::string& path) const;
  bool HasPath(const std::string& path) const;
  int64_t TouchedUs(const std::string& path) const;
  int LastAttempt() const;
  Result<void> CheckOwn() const;
  AttemptReport ReadReport(int attempt, int slot) const;
  void ReadSending(JobEvidence* evidence) const;
  std::vector<AttemptReport> ReadSlots(const ArraySpec& array) const;

  std::string path_;
  std::optional<uid_t> stranger_;
};

}  // namespace overcap
