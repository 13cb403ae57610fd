// SPDX-License-Identifier: Apache-2.0
#include "launch/failure_text.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace overcap {
namespace {

AttemptEnd Failed(int exit_status, int sig) {
  AttemptEnd end;
  end.cause = AttemptEnd::Cause::kRankFailed;
  end.first.emplace();
  end.first->rank = 3;
  end.first->host = "ml2";
  end.first->end = {exit_status, sig};
  return end;
}

TEST(FailureText, NamesTheRankItsHostAndItsExitStatus) {
  EXPECT_EQ(EndLine(Failed(7, 0), 0), "rank 3 on 'ml2' failed first: exit status 7");
  EXPECT_EQ(ExitStatusOf(Failed(7, 0)), 7);
}

TEST(FailureText, AddsWhatTheRankTold) {
  AttemptEnd end = Failed(1, 0);
  end.first->message = "ValueError: bad batch 17";
  EXPECT_EQ(EndLine(end, 0), "rank 3 on 'ml2' failed first: exit status 1: ValueError: bad batch 17");
}

TEST(FailureText, NamesTheSignal) {
  EXPECT_EQ(EndLine(Failed(139, SIGSEGV), 0), "rank 3 on 'ml2' failed first: killed by signal 11 (SIGSEGV)");
  EXPECT_EQ(ExitStatusOf(Failed(139, SIGSEGV)), 139);
}

TEST(FailureText, TellsWantOfMemoryFromOtherKills) {
  AttemptEnd end = Failed(137, SIGKILL);
  end.first->out_of_memory = true;
  EXPECT_NE(EndLine(end, 0).find("ran out of memory"), std::string::npos);
}

TEST(FailureText, DoesNotInventAStatusThatNobodyTold) {
  AttemptEnd end = Failed(-1, 0);
  end.first->end_known = false;
  EXPECT_EQ(ExitStatusOf(end), 1);
  EXPECT_NE(EndLine(end, 0).find("did not tell"), std::string::npos);
}

TEST(FailureText, SaysWhyARankWasNotStarted) {
  AttemptEnd end = Failed(127, 0);
  end.first->reason = "command 'pythn' does not exist";
  EXPECT_EQ(EndLine(end, 0), "rank 3 on 'ml2' was not started: command 'pythn' does not exist");
}

TEST(FailureText, SilenceIs124AndASignal128More) {
  AttemptEnd end;
  end.cause = AttemptEnd::Cause::kIdle;
  EXPECT_EQ(ExitStatusOf(end), 124);
  EXPECT_EQ(EndLine(end, 600'000'000), "no rank has written anything for 10m: all were stopped");
  end.cause = AttemptEnd::Cause::kCancelled;
  end.signal = SIGINT;
  EXPECT_EQ(ExitStatusOf(end), 130);
  EXPECT_EQ(EndLine(end, 0), "stopped by signal 2 (SIGINT)");
}

TEST(FailureText, AHostThatDoesNotAnswerIsTheUsersBusiness) {
  AttemptEnd end;
  end.cause = AttemptEnd::Cause::kHostFailed;
  end.code = ErrorCode::kUsage;
  end.message = "host 'ml9' does not answer";
  EXPECT_EQ(ExitStatusOf(end), 2);
  EXPECT_EQ(EndLine(end, 0), "host 'ml9' does not answer");
}

}  // namespace
}  // namespace overcap
