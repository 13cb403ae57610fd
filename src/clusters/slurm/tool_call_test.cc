// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/tool_call.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace overcap {
namespace {

using std::chrono::milliseconds;

SpawnRequest Shell(const std::string& script) {
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", script};
  request.env = {"PATH=/usr/bin:/bin"};
  return request;
}

TEST(ToolCall, WarningsDoNotGetAmongTheRows) {
  const auto answer = CallTool(Shell("echo row; echo warning >&2; echo row"), milliseconds(20'000), 100);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->out, "row\nrow\n");
  EXPECT_EQ(answer->err, "warning\n");
  EXPECT_TRUE(answer->end.ok());
}

TEST(ToolCall, AFailureIsAnAnswerWithItsStatus) {
  const auto answer = CallTool(Shell("echo no >&2; exit 3"), milliseconds(20'000), 100);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->end.exit_status, 3);
  EXPECT_EQ(answer->err, "no\n");
}

TEST(ToolCall, MuchOutputOnBothIsReadWithoutADeadlock) {
  const auto answer = CallTool(Shell("head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero"),
                               milliseconds(20'000), 3'000'000);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->out.size(), 3'000'000u);
  EXPECT_EQ(answer->err.size(), 64u << 10);
}

TEST(ToolCall, OneThatPrintsForEverOrDoesNotEndIsKilled) {
  const auto endless = CallTool(Shell("yes"), milliseconds(20'000), 1'000'000);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().message, "'/bin/sh' printed too much");
  const auto hanging = CallTool(Shell("echo $$; exec sleep 1000"), milliseconds(50), 1'000'000);
  ASSERT_FALSE(hanging);
  EXPECT_EQ(hanging.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(hanging.error().message, "'/bin/sh' did not end in time");
}

TEST(ToolCall, AProgramThatIsNotThereIsNotFound) {
  SpawnRequest request;
  request.argv = {"no-such-squeue"};
  const auto answer = CallTool(request, milliseconds(1000), 100);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kNotFound);
}

TEST(ToolCall, OneThatIsFedReadsAllAndTheEnd) {
  auto run = StartTool(Shell("read first; echo \"got $first\"; cat >&2"), milliseconds(20'000), 100'000);
  ASSERT_TRUE(run);
  const std::string rest(10'000, 'x');
  (*run)->Give("one\n" + rest);
  const auto line = (*run)->Line();
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, "got one\n");
  const auto answer = (*run)->Finish();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->out, "got one\n");
  EXPECT_EQ(answer->err, rest);
  EXPECT_TRUE(answer->end.ok());
}

TEST(ToolCall, OneThatIsGivenNothingIsKilledBeforeItSeesAnEnd) {
  const std::string mark = testing::TempDir() + "/tool-call-mark";
  unlink(mark.c_str());
  {
    auto run = StartTool(Shell("cat; touch " + mark), milliseconds(20'000), 100);
    ASSERT_TRUE(run);
  }
  EXPECT_NE(access(mark.c_str(), F_OK), 0);
}

TEST(ToolCall, FeedingOneThatHasEndedIsNoErrorAndNoSignal) {
  auto run = StartTool(Shell("exec 0<&-; echo no >&2; exit 4"), milliseconds(20'000), 100);
  ASSERT_TRUE(run);
  const auto line = (*run)->Line();
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, "");
  (*run)->Give("too late");
  const auto answer = (*run)->Finish();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->end.exit_status, 4);
  EXPECT_EQ(answer->err, "no\n");
}

}  // namespace
}  // namespace overcap
