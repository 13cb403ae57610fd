// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/history_text.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/slurm/marked_rows.h"
#include "clusters/slurm/slurm_time.h"

namespace overcap {
namespace {

enum Column { kUser, kAccount, kPartition, kTimelimit, kElapsed, kStart, kEnd, kColumns };
constexpr std::string_view kFields = "User,Account,Partition,TimelimitRaw,ElapsedRaw,Start,End";

}  // namespace

std::vector<std::string> HistoryCommand(int64_t since_us, std::string_view mark) {
  return {"sacct",
          "--noheader",
          "--allocations",
          "--parsable",
          "--allusers",
          StrCat("--delimiter=", kFieldEnd, mark),
          StrCat("--format=", kFields),
          "--state=CD,F,TO,CA,OOM,NF,PR",
          StrCat("--starttime=", FormatSlurmTime(since_us)),
          "--endtime=now"};
}

Result<std::vector<PastRun>> ParseHistory(std::string_view text, std::string_view mark) {
  std::vector<PastRun> runs;
  MarkedRows rows(text, mark, 0, kColumns);
  std::vector<std::string_view> fields;
  while (true) {
    auto more = rows.Next(&fields);
    if (!more) return Fail(more.error().code, StrCat("sacct: ", more.error().message));
    if (!*more) break;
    const auto ran_s = ParseInt(fields[kElapsed]);
    const auto start_us = ParseSlurmTime(fields[kStart]), end_us = ParseSlurmTime(fields[kEnd]);
    // Right after its end a job may stand in the accounts without partition and limit. That is no run without
    // a limit: it is left out until they are complete.
    if (fields[kTimelimit].empty()) continue;
    if (!ran_s || *ran_s <= 0 || !start_us || !end_us) continue;
    PastRun& run = runs.emplace_back();
    run.user = fields[kUser], run.lab = fields[kAccount];
    run.partition = fields[kPartition].substr(0, fields[kPartition].find(','));
    run.run_s = *ran_s, run.ended_us = *end_us;
    const auto limit_s = ParseSlurmDuration(fields[kTimelimit]);
    run.limit_s = limit_s && *limit_s != kSlurmUnlimited ? *limit_s : 0;
  }
  return runs;
}

bool SaysThereIsNoHistory(std::string_view err) {
  return err.find("accounting storage is disabled") != std::string_view::npos;
}

}  // namespace overcap
