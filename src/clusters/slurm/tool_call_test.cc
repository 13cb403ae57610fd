// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/tool_call.h"

#include <gtest/gtest.h>
#include <signal.h>

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

}  // namespace
}  // namespace overcap
