// SPDX-License-Identifier: Apache-2.0
#include "control/reboot_line.h"

#include <chrono>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/text.h"
#include "sys/capture_output.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr std::string_view kMark = "overcap workspace auto 00ff";

// What cron does to a line before a shell gets it.
std::string AsCronHasIt(std::string line) {
  line = line.substr(std::string("@reboot ").size());
  for (size_t at = 0; (at = line.find("\\%", at)) != std::string::npos; ++at) line.erase(at, 1);
  return line;
}

TEST(RebootLine, WordsComeThroughCronAndTheShellAsTheyAre) {
  const std::vector<std::string> words = {"printf", "%s|", "a b", "100%", "it's $(touch x) # no `end`", "*"};
  const auto line = RebootLine(words, kMark);
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->ends_with(" # overcap workspace auto 00ff")) << *line;
  for (size_t at = 0; (at = line->find('%', at)) != std::string::npos; ++at) EXPECT_EQ((*line)[at - 1], '\\');
  SpawnRequest request;
  request.argv = {"/bin/sh", "-c", AsCronHasIt(*line)};
  request.env = {"PATH=/usr/bin:/bin"};
  const auto run = CaptureOutput(request, std::chrono::seconds(20));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->output, "a b|100%|it's $(touch x) # no `end`|*|");
}

TEST(RebootLine, WhatNoCrontabCanHoldIsRefused) {
  EXPECT_EQ(RebootLine({"x", "two\nlines"}, kMark).error().code, ErrorCode::kUsage);
}

TEST(RebootLine, ReplacesItsOwnLineAndNothingElse) {
  const std::string others = "# mine\n\n0 * * * * true\n@reboot true # overcap workspace auto 01\n";
  const std::string line = StrCat("@reboot overcap # ", kMark);
  const std::string with = CrontabWith(others, line, kMark);
  EXPECT_EQ(with, StrCat(others, line, "\n"));
  EXPECT_EQ(CrontabWith(with, StrCat("@reboot other # ", kMark), kMark),
            StrCat(others, "@reboot other # ", kMark, "\n"));
  EXPECT_EQ(CrontabWith(with, "", kMark), others);
  EXPECT_EQ(CrontabWith("no end", line, kMark), StrCat("no end\n", line, "\n"));
  EXPECT_EQ(CrontabWith("", "", kMark), "");
}

// A program `crontab` that says and does what `script` says.
class WithCrontab : public testing::Test {
 protected:
  void Say(const std::string& script) {
    ASSERT_TRUE(PosixFiles().WriteAtomic(folder_ / "crontab", "#!/bin/sh\n" + script, false));
    ASSERT_EQ(chmod((folder_ / "crontab").c_str(), 0755), 0);
  }

  TempFolder folder_;
  Variables variables_{{StrCat("PATH=", folder_.Path(), ":/usr/bin:/bin")}};
};

TEST_F(WithCrontab, FirstLineAndLastLine) {
  const std::string kept = folder_ / "kept";
  Say(StrCat("if [ \"$1\" = -l ]; then cat '", kept,
             "' 2>/dev/null || { echo 'no crontab for ann' >&2; exit 1; }\n", "else cat > '", kept,
             "'; fi\n"));
  EXPECT_EQ(SetRebootLine(variables_, "", kMark), false);
  const std::string line = *RebootLine({"overcap"}, kMark);
  EXPECT_EQ(SetRebootLine(variables_, line, kMark), true);
  EXPECT_EQ(*PosixFiles().Read(kept), line + "\n");
  EXPECT_EQ(SetRebootLine(variables_, line, kMark), false);
  EXPECT_EQ(SetRebootLine(variables_, "", kMark), true);
  EXPECT_EQ(*PosixFiles().Read(kept), "");
}

TEST_F(WithCrontab, WhoMayNotHaveOneIsToldInItsWords) {
  Say("echo 'You (ann) are not allowed to use this program (crontab)' >&2; exit 1\n");
  const auto set = SetRebootLine(variables_, *RebootLine({"overcap"}, kMark), kMark);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kDenied);
  EXPECT_NE(set.error().message.find("You (ann) are not allowed"), std::string::npos) << set.error().message;
}

TEST_F(WithCrontab, OneThatCannotBeWrittenIsToldSo) {
  Say("[ \"$1\" = -l ] || { echo 'disk full' >&2; exit 1; }\n");
  const auto set = SetRebootLine(variables_, *RebootLine({"overcap"}, kMark), kMark);
  ASSERT_FALSE(set);
  EXPECT_NE(set.error().message.find("disk full"), std::string::npos) << set.error().message;
}

TEST(RebootLineWithoutCron, IsToldSo) {
  const TempFolder empty;
  const auto set = SetRebootLine(Variables({StrCat("PATH=", empty.Path())}), "@reboot x", kMark);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace overcap
