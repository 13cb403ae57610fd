// SPDX-License-Identifier: Apache-2.0
// The queue, as `squeue` tells it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/slurm/state_words.h"
#include "clusters/slurm/tres_text.h"

namespace overcap {

struct SqueueJob {
  int64_t job_id = 0;        // of its own, also for a task of an array
  int64_t array_job_id = 0;  // the array's; 0: no array
  int array_task = -1;       // -1: no single task
  // The tasks of an array that wait stand in one row: "2-9%2". When such a row has ended (cancelled before
  // any of them ran) Slurm no longer tells it is an array's; its job id is the array's then.
  std::string array_tasks;
  std::string user, account, partition, qos, name, comment;
  std::string raw_state, raw_reason;
  int nodes = 0, cpus = 0;
  std::string node_list;                // for ExpandHostList(); empty while it waits
  SlurmTres tres;                       // asked for while it waits, then given
  std::optional<int64_t> time_limit_s;  // kSlurmUnlimited
  // 0: not known. Of a job that waits `start_us` and `end_us` are Slurm's guess, if it made one.
  int64_t submit_us = 0, start_us = 0, end_us = 0;
  int64_t priority = 0;
  std::string features;    // that its nodes must have: "a40|rtx_6000", as its user wrote it
  std::string dependency;  // "afterok:1(unfulfilled),afterany:2(unfulfilled)"
  SlurmExit exit;
  int restarts = 0;
};

// Every job that the controller knows, the lately ended ones too (it sends them in any case). `mark` is a
// random IsRowMark(), used for this call alone. Run it with the variables of tool_variables.h.
std::vector<std::string> SqueueCommand(std::string_view mark);

// kCorrupt when the text is cut off or is not what SqueueCommand() prints: then nothing is known, which is
// not the same as an empty queue.
Result<std::vector<SqueueJob>> ParseSqueue(std::string_view text, std::string_view mark);

// A row that is only cut into its columns: of many thousand jobs few are looked at closely. Views of the
// text.
class SqueueRow {
 public:
  static constexpr size_t kColumns = 28;

  int64_t job_id() const { return job_id_; }
  int64_t array_job_id() const { return array_job_id_; }  // 0: no array
  std::string_view user() const;
  std::string_view state() const;
  std::string_view reason() const;
  std::string_view comment() const;  // "": none
  std::string_view name() const;
  int64_t submit_us() const;
  int64_t start_us() const;
  int restarts() const;
  int nodes() const;
  int gpus() const;
  bool is_array() const;
  SqueueJob Parse() const;  // all of it

 private:
  friend Result<std::vector<SqueueRow>> ScanSqueue(std::string_view text, std::string_view mark,
                                                   std::string_view user);
  std::string_view Field(size_t column) const;
  std::array<std::string_view, kColumns> Fields() const;

  // Ten thousand rows of views would be megabytes that must be touched: where columns begin is enough.
  const char* text_ = nullptr;
  std::array<uint32_t, kColumns> begins_, ends_;
  int64_t job_id_ = 0, array_job_id_ = 0;
};

// The rows of one user. Errors as ParseSqueue().
Result<std::vector<SqueueRow>> ScanSqueue(std::string_view text, std::string_view mark,
                                          std::string_view user);
// Only whether it can be read.
Result<void> CheckSqueue(std::string_view text, std::string_view mark);

// The comment that ties a job of Slurm to one of ours, and back: "overcap:<id>"; "" when it is no such
// comment.
std::string SlurmComment(std::string_view id);
std::string_view IdOfSlurmComment(std::string_view comment);

}  // namespace overcap
