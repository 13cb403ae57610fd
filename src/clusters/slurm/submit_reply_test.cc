// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/submit_reply.h"

#include <fstream>
#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

const ToolContext kContext{"sky", "nolab", "debug", "", "nofeat"};

ToolFailure Failure(std::string_view text) {
  return ReadToolFailure("sbatch", text, 1, kContext);
}

TEST(SubmitReply, TheJobIdIsTheLastLineThatIsOne) {
  EXPECT_EQ(ParseSubmitReply("123\n")->job_id, 123);
  EXPECT_EQ(ParseSubmitReply("123;sky\n")->cluster, "sky");
  EXPECT_EQ(ParseSubmitReply("Welcome to Sky!\n42 nodes are idle\n77\n\n")->job_id, 77);
}

TEST(SubmitReply, WhatHasNoJobIdIsAnError) {
  for (const char* text :
       {"", "\n", "Submitted batch job 5\n", "0\n", "-5\n", "12x\n", "99999999999999999999\n"}) {
    const auto reply = ParseSubmitReply(text);
    ASSERT_FALSE(reply) << text;
    EXPECT_EQ(reply.error().code, ErrorCode::kInternal);
  }
}

TEST(ToolFailures, ARefusalNamesWhatWasAskedForAndKeepsSlurmsWords) {
  const ToolFailure failure = Failure(
      "sbatch: error: Batch job submission failed: Invalid account or account/partition combination "
      "specified\n");
  EXPECT_EQ(failure.error.code, ErrorCode::kDenied);
  EXPECT_EQ(failure.error.message,
            "cluster 'sky': account 'nolab' is not known, or not yours to use in partition 'debug' (sbatch: "
            "Invalid "
            "account or account/partition combination specified)");
  EXPECT_FALSE(failure.error.hint.empty());
  EXPECT_FALSE(failure.maybe_done);
}

TEST(ToolFailures, WithoutAQosTheAccountIsWhatIsMissing) {
  const std::string_view words = "sbatch: error: Batch job submission failed: Invalid qos specification\n";
  const ToolContext plain{"sky", "", "overcap", "", "", [] { return "yours: lab-a, overcap"; }, {}};
  const ToolFailure failure = ReadToolFailure("sbatch", words, 1, plain);
  EXPECT_EQ(failure.error.message,
            "cluster 'sky': partition 'overcap' does not take the default QOS of account (default) (sbatch: "
            "Invalid qos specification)");
  EXPECT_EQ(failure.error.hint, "name an account that it takes with --account; yours: lab-a, overcap");
  const ToolContext with_qos{"sky", "lab-a", "overcap", "high", "", {}, {}};
  EXPECT_NE(ReadToolFailure("sbatch", words, 1, with_qos).error.message.find("qos 'high' does not exist"),
            std::string::npos);
}

TEST(ToolFailures, WithoutADefaultPartitionThePartitionsAreNamed) {
  const std::string_view words =
      "sbatch: error: Batch job submission failed: No partition specified or system default partition\n";
  const ToolContext context{"sky", "", "", "", "", {}, [] { return "there are: debug, short"; }};
  const Error error = ReadToolFailure("sbatch", words, 1, context).error;
  EXPECT_EQ(error.code, ErrorCode::kUsage);
  EXPECT_EQ(error.hint, "name one with -p; there are: debug, short");
}

TEST(ToolFailures, AFeatureThatOnlySlurmWasToldOfIsNotCalledADefault) {
  const std::string_view words =
      "sbatch: error: Batch job submission failed: Invalid feature specification\n";
  EXPECT_NE(ReadToolFailure("sbatch", words, 1, {"sky"})
                .error.message.find("no node has the feature that is asked for"),
            std::string::npos);
  EXPECT_NE(ReadToolFailure("sbatch", words, 1, {"sky", "", "", "", "ib"}).error.message.find("feature 'ib'"),
            std::string::npos);
}

TEST(ToolFailures, TheCauseCountsMoreThanTheLineThatSumsUp) {
  const ToolFailure munge = Failure(
      "sbatch: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\"\n"
      "sbatch: error: Batch job submission failed: Protocol authentication error\n");
  EXPECT_EQ(munge.error.code, ErrorCode::kUnavailable);
  EXPECT_NE(munge.error.message.find("munge does not run"), std::string::npos);
  const ToolFailure memory = Failure(
      "sbatch: error: Memory specification can not be satisfied\n"
      "sbatch: error: Batch job submission failed: Requested node configuration is not available\n");
  EXPECT_NE(memory.error.message.find("as much memory"), std::string::npos);
}

TEST(ToolFailures, ATimeoutMayHaveSubmittedTheJob) {
  EXPECT_TRUE(Failure("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation")
                  .maybe_done);
  EXPECT_FALSE(
      Failure(
          "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)")
          .maybe_done);
  EXPECT_TRUE(Failure("").maybe_done);
}

TEST(ToolFailures, ASitesOwnWordsAreShown) {
  const ToolFailure failure = Failure(
      "sbatch: error: Please load the module 'cuda' first\n"
      "sbatch: error: Batch job submission failed: Unspecified error\n");
  EXPECT_EQ(failure.error.message,
            "cluster 'sky': sbatch failed: Please load the module 'cuda' first; Unspecified error");
  EXPECT_EQ(failure.error.code, ErrorCode::kDenied);
}

TEST(ToolFailures, NothingSaidIsTheExitStatus) {
  EXPECT_EQ(ReadToolFailure("squeue", "", 139, kContext).error.message,
            "cluster 'sky': squeue failed: exit status 139");
}

// Every failure that was recorded, but those of a bad script and of scontrol, is understood.
TEST(ToolFailures, EveryRecordedFailureHasAClearLine) {
  std::ifstream file(OVERCAP_TEST_DATA "/slurm-22.05.8/tool-failures.txt");
  std::string command, text, line;
  int understood = 0, other = 0;
  while (std::getline(file, line)) {
    if (line.substr(0, 2) == "$ ") {
      command = line;
      text.clear();
    } else if (line.substr(0, 3) == "rc ") {
      const ToolFailure failure = Failure(text);
      EXPECT_EQ(failure.error.message.find('\n'), std::string::npos);
      (failure.error.code == ErrorCode::kInternal ? other : understood) += 1;
      if (command.find("nopart") != std::string::npos) {
        EXPECT_NE(failure.error.message.find("no partition"), std::string::npos);
      }
    } else {
      text += line + "\n";
    }
  }
  EXPECT_GT(understood, 35);
  EXPECT_LE(other, 8);
}

}  // namespace
}  // namespace overcap
