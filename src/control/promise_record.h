// SPDX-License-Identifier: Apache-2.0
// What was promised and what became of it. docs/formats/promises.md says what holds in the file and when a
// promise held.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/cluster.h"
#include "sched/forecast/correction.h"

namespace overcap {

struct StartPromise {
  std::string cluster, job, partition;
  int64_t made_us = 0, p50_us = 0, p90_us = 0;
  int replays = 0;
  int64_t past_runs = 0;
  int64_t foreseen_p50_us = 0, foreseen_p90_us = 0;  // before they were corrected; 0: they were not
  bool operator==(const StartPromise&) const = default;
};

struct PromiseOutcome {
  std::string cluster, job;
  int64_t start_us = 0;  // 0: it never started
  int64_t gone_us = 0;   // 0: it did
  int64_t at_us = 0;
  bool operator==(const PromiseOutcome&) const = default;
};

struct KeptPromise {
  StartPromise promise;
  std::optional<PromiseOutcome> outcome;
};

std::string PromiseLine(const StartPromise& promise);
std::string OutcomeLine(const PromiseOutcome& outcome);
// Promises in the order in which they were made, with what became of them. Lines that are none are skipped.
std::vector<KeptPromise> ReadPromises(std::string_view text);

enum class Kept { kHeld, kBroken, kOpen, kVoid };
// `told_us` is the P50 or P90 of the promise.
Kept Judge(const KeptPromise& kept, int64_t told_us, int64_t now_us);

struct PromiseRow {
  std::string cluster, partition;
  int promises = 0, jobs = 0;
  int p50_held = 0, p50_broken = 0, p90_held = 0, p90_broken = 0, open = 0, void_count = 0;
};
// By cluster and partition, sorted; the last of several stands for all and has the cluster "all".
std::vector<PromiseRow> CountPromises(const std::vector<KeptPromise>& kept, int64_t now_us);
std::string PromisesToJson(const std::vector<PromiseRow>& rows);

// By what became of the last promises on a cluster: those of the same partition where there are enough.
forecast::Correction CorrectionOf(const std::vector<KeptPromise>& kept, const std::string& cluster,
                                  const std::string& partition, int64_t now_us);

// What the record of a job says of a promise; nothing: it waits still.
std::optional<PromiseOutcome> OutcomeOf(const StartPromise& promise, const JobRecord& record, int64_t now_us);

class PromiseFile {
 public:
  explicit PromiseFile(const std::string& root)
      : path_(root + "/promises.jsonl"), lock_(root + "/promises.lock") {}

  // Empty when there is none.
  Result<std::vector<KeptPromise>> Load() const;
  // Durable when it returns. A promise that was made already is not made again.
  Result<void> Add(const StartPromise& promise);
  Result<void> Add(const std::vector<PromiseOutcome>& outcomes);

 private:
  Result<void> Append(const std::string& lines);

  std::string path_, lock_;
};

// Asks the cluster what became of promises that have no outcome yet, and writes it down.
Result<void> SettlePromises(Cluster& cluster, const std::string& name, PromiseFile* file, int64_t now_us);

}  // namespace overcap
