// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "clusters/slurm/pending_reason.h"
#include "clusters/slurm/sacct_text.h"
#include "clusters/slurm/sbatch_script.h"
#include "clusters/slurm/sinfo_text.h"
#include "clusters/slurm/slurm_time.h"
#include "clusters/slurm/squeue_text.h"
#include "clusters/slurm/state_words.h"
#include "clusters/slurm/submit_reply.h"
#include "clusters/slurm/tres_text.h"
#include "inputs.h"

namespace overcap {
namespace {

constexpr std::string_view kMark = "Mark1234";
const std::string kEnd = "\x1f", kFreeEnd = "\x1fMark1234";

std::string Row(const std::vector<std::string>& plain, const std::vector<std::string>& free) {
  std::string row;
  for (const std::string& field : plain) row += field + kEnd;
  for (const std::string& field : free) row += field + kFreeEnd;
  return row + "\n";
}

const std::vector<std::string> kWords = {
    kEnd,     kFreeEnd, "\n", "N/A", "(null)",      "UNLIMITED", "99999999999999999999",
    "-1",     "2-9%2",  "PD", ",",   "gres/gpu:a=", "(IDX:0-",   "1-02:03:04",
    "Unknown"};

TEST(SlurmTextFuzz, WhatSqueuePrintsIsReadOrRefused) {
  const std::string job = Row({"5",
                               "4",
                               "2-9%2",
                               "alice",
                               "lab-a",
                               "short",
                               "labq",
                               "PENDING",
                               "Resources",
                               "1",
                               "n[1-2]",
                               "cpu=1,mem=100M,node=1,billing=1,gres/gpu=4,gres/gpu:a40=4",
                               "1",
                               "1-00:00:00",
                               "1794735703",
                               "2026-11-15T02:15:07",
                               "N/A",
                               "Unknown",
                               "1000",
                               "afterok:1(unfulfilled)",
                               "768",
                               "1",
                               "gres:gpu:a40:2",
                               "gres:gpu:1",
                               "N/A",
                               "2",
                               "a40|ib"},
                              {"train", "overcap:x"});
  ForEachInput(Mutator({job, job + job}, kWords, 21), [&](const std::string& input) {
    const auto jobs = ParseSqueue(input, kMark);
    const auto scanned = ScanSqueue(input, kMark, "alice");
    EXPECT_EQ(bool(CheckSqueue(input, kMark)), bool(jobs));
    if (jobs) {
      EXPECT_TRUE(scanned);
      const auto hers =
          std::count_if(jobs->begin(), jobs->end(), [](const auto& one) { return one.user == "alice"; });
      EXPECT_EQ(scanned ? static_cast<long>(scanned->size()) : -1, hers);
      for (const SqueueRow& row : scanned ? *scanned : std::vector<SqueueRow>())
        EXPECT_EQ(row.Parse().job_id, row.job_id());
    }
    if (!jobs) return ExpectOneLine(jobs.error(), ErrorCode::kCorrupt);
    for (const SqueueJob& row : *jobs) {
      EXPECT_GT(row.job_id, 0);
      EXPECT_GE(row.array_task, -1);
      EXPECT_GE(row.tres.gpus, 0);
      EXPECT_GE(row.exit.status, 0);
      EXPECT_LE(row.exit.signal, 127);
      EXPECT_GE(row.submit_us, 0);
    }
    return true;
  });
}

TEST(SlurmTextFuzz, WhatSacctPrintsIsReadOrRefused) {
  const std::string job = Row({}, {"6_[2-9%2]",
                                   "6",
                                   "CANCELLED by 1000",
                                   "3:0",
                                   "0:9",
                                   "alice",
                                   "lab-a",
                                   "short",
                                   "labq",
                                   "1794735703",
                                   "1794735703",
                                   "None",
                                   "Unknown",
                                   "Partition_Limit",
                                   "billing=1,cpu=1,gres/gpu:a40=2,gres/gpu=2,mem=1G",
                                   "cpu=1",
                                   "None assigned",
                                   "Priority",
                                   "train",
                                   "",
                                   "sbatch --comment=overcap:x --job-name=y"});
  ForEachInput(Mutator({job, job + job}, kWords, 22), [&](const std::string& input) {
    const auto jobs = ParseSacct(input, kMark);
    if (!jobs) return ExpectOneLine(jobs.error(), ErrorCode::kCorrupt);
    for (const SacctJob& row : *jobs) {
      EXPECT_GT(row.job_id, 0);
      EXPECT_GE(row.start, 1);
      EXPECT_GE(row.given.mem_bytes, 0);
    }
    return true;
  });
}

TEST(SlurmTextFuzz, WhatSinfoPrintsIsReadOrRefused) {
  const std::string node = Row({"n1", "short*", "idle+drain", "3/13/0/16", "1.67", "16000", "300", "8630",
                                "gpu:a40:4(S:0-1)", "gpu:a40:2(IDX:0,3)", "a40,ib"},
                               {"disk bad"});
  ForEachInput(Mutator({node, node + node}, kWords, 23), [&](const std::string& input) {
    const auto info = ParseSinfo(input, kMark);
    if (!info) return ExpectOneLine(info.error(), ErrorCode::kCorrupt);
    for (const SlurmNode& row : info->nodes) {
      EXPECT_FALSE(row.name.empty());
      EXPECT_GE(row.GpuTotal(), 0);
      EXPECT_GE(row.GpuUsed(), 0);
      EXPECT_GE(row.mem_bytes, 0);
      EXPECT_GE(row.cpus, 0);
    }
    return true;
  });
}

TEST(SlurmTextFuzz, StatesReasonsAndExitCodesAlwaysMeanSomething) {
  const std::vector<std::string> texts = {
      "CANCELLED by 1000", "OUT_OF_ME+", "PENDING",
      "FAILED,COMPLETING", "3:0",        "ReqNodeNotAvail, UnavailableNodes:n[1-2]",
      "QOSMaxGRESPerUser", "(null)",     "QOSMaxCpuMinutesPerJobLimit"};
  const std::vector<std::string> words = {"+",   " by ", ",",   "(",       ")", "Limit",
                                          "Grp", "Max",  "QOS", "PerUser", ":", "_"};
  ForEachInput(Mutator(texts, words, 24), [&](const std::string& input) {
    const SlurmState state = ReadSlurmState(input, input);
    EXPECT_EQ(state.word.empty(), Trim(input).empty());
    const SlurmExit exit = ReadSlurmExit(input);
    EXPECT_TRUE(exit.status >= 0 && exit.status <= 255 && exit.signal >= 0 && exit.signal <= 127);
    EXPECT_GE(ReadSlurmEnding(input, exit, input).exit_status, -1);
    const PendingReason reason = ReadPendingReason(input);
    EXPECT_EQ(reason.text.empty(), reason.kind == ReasonKind::kNone || Trim(input).empty()) << reason.word;
    ReadNodeState(input);
    return reason.kind != ReasonKind::kUnknown || state.state != JobState::kUnknown;
  });
}

TEST(SlurmTextFuzz, TimesMemoryAndTresStayInBounds) {
  const std::vector<std::string> texts = {"1-02:03:04", "30:00", "2026-11-15T02:15:07",          "1794735703",
                                          "1.5G",       "16000", "cpu=4,mem=400M,gres/gpu:a40=2"};
  const std::vector<std::string> words = {"-", ":", "T", ".", "9999999999", "K", "E", "=", ",", "gres/gpu:"};
  ForEachInput(Mutator(texts, words, 25), [&](const std::string& input) {
    const auto span = ParseSlurmDuration(input);
    const auto time = ParseSlurmTime(input);
    const auto memory = ParseSlurmMemory(input);
    EXPECT_GE(span.value_or(0), 0);
    EXPECT_GE(time.value_or(1), 1);
    EXPECT_GE(memory.value_or(0), 0);
    EXPECT_GE(ParseTres(input).gpus, 0);
    return span || time || memory;
  });
}

TEST(SlurmTextFuzz, RepliesAndFailuresAreOneLine) {
  const std::vector<std::string> texts = {
      "123;sky\n", "Welcome\n77\n",
      "sbatch: error: Batch job submission failed: Invalid account or account/partition combination "
      "specified\n",
      "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"};
  const std::vector<std::string> words = {"\n", "error: ", ";", "'", "$account", "\x1b[31m", "\xff", "1"};
  ForEachInput(Mutator(texts, words, 26), [&](const std::string& input) {
    const ToolFailure failure = ReadToolFailure("sbatch", input, 1, {input, input, input, input, input});
    ExpectOneLine(failure.error, failure.error.code);
    const auto reply = ParseSubmitReply(input);
    if (!reply) return ExpectOneLine(reply.error(), ErrorCode::kInternal);
    EXPECT_GT(reply->job_id, 0);
    return true;
  });
}

// #SBATCH "word", with no quote inside that would end it.
bool IsOneQuotedDirective(std::string_view line) {
  constexpr std::string_view kBegin = "#SBATCH \"";
  if (!line.starts_with(kBegin)) return false;
  size_t at = kBegin.size();
  while (at < line.size() && line[at] != '"') at += line[at] == '\\' ? 2 : 1;
  return at + 1 == line.size();
}

TEST(SlurmTextFuzz, NoArgumentOfTheUsersBecomesTheScript) {
  const std::vector<std::string> texts = {"--exclude=n1 -x n2", "--exclusive", "-Ok -pdebug",
                                          "--mem-per-gpu 4G"};
  const std::vector<std::string> words = {" ",       "-",      "--", "=",  "--array=1", "-a",
                                          "evil.sh", "--wrap", "\n", "\"", "\\"};
  ForEachInput(Mutator(texts, words, 27), [&](const std::string& input) {
    SbatchSettings settings;
    settings.extra_args = Split(input, ' ');
    SbatchRequest request;
    request.spec.id = "x";
    request.spec.name = input;
    request.folder = "/jobs/x";
    request.agent = {"/bin/overcap", "agent"};
    const auto plan = PlanSbatch(request, settings);
    if (!plan) return ExpectOneLine(plan.error(), ErrorCode::kUsage);
    EXPECT_EQ(settings.extra_args[0][0], '-');
    EXPECT_EQ(plan->argv.back(), "--parsable");
    const std::vector<std::string> lines = Split(plan->script, '\n');
    if (lines.size() < 3) ADD_FAILURE() << plan->script;
    EXPECT_EQ(lines.front(), "#!/bin/sh");
    EXPECT_EQ(lines.back(), "");
    EXPECT_EQ(lines[lines.size() - 2], "exec /bin/overcap agent");
    for (size_t i = 1; i + 2 < lines.size(); ++i) EXPECT_TRUE(IsOneQuotedDirective(lines[i])) << lines[i];
    return true;
  });
}

}  // namespace
}  // namespace overcap
