// SPDX-License-Identifier: Apache-2.0
#include "control/auto_leftovers.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

using Words = std::vector<std::string>;

// As the last version with --reboot wrote it.
constexpr std::string_view kLine =
    "@reboot env PATH=/usr/bin:/bin 'OVERCAP_HOME=/home/ann/a b' /opt/overcap --cluster local workspace auto "
    "work --settle 1s --on-change # overcap workspace auto 00ff";
const Words kArgv = {"/opt/overcap", "--cluster", "local", "workspace",  "auto",
                     "work",         "--settle",  "1s",    "--on-change"};

TEST(OldAutoWords, OnChangeIsEveryFiveMinutes) {
  EXPECT_EQ(ReadOldAutoWords(kArgv),
            (Words{"/opt/overcap", "--cluster", "local", "workspace", "auto", "work", "--every", "5m"}));
  const Words all = {"--settle", "1s", "--max-delay", "9m", "--check", "2h", "--margin", "1m", "--on-change"};
  EXPECT_EQ(ReadOldAutoWords(all), (Words{"--margin", "1m", "--every", "5m"}));
  const Words timer = {"overcap", "workspace", "auto", "--every", "1h"};
  EXPECT_EQ(ReadOldAutoWords(timer), timer);
}

TEST(CrontabWithout, RemovesTheLineOfThisWorkspaceAndNoOtherByte) {
  const std::string before = "# mine\n\n0 * * * * true\r\n";
  const std::string after = "@reboot true # overcap workspace auto 00fe\n\t# no end";
  EXPECT_EQ(CrontabWithout(StrCat(before, kLine, "\n", after), "00ff"), before + after);
  EXPECT_EQ(CrontabWithout(StrCat(before, kLine), "00ff"), before);
  EXPECT_EQ(CrontabWithout(StrCat(kLine, "\n", kLine, "\n"), "00ff"), "");
  EXPECT_EQ(CrontabWithout("", "00ff"), "");
}

TEST(CrontabWithout, KeepsWhatOnlyLooksLikeTheLine) {
  for (const std::string& line : {
           std::string(kLine) + "0",                                             // another workspace
           "# " + std::string(kLine),                                            // a comment
           "0 1 * * * " + std::string(kLine.substr(8)),                          // another time
           std::string("@reboot env echo hello # overcap workspace auto 00ff"),  // another command
           std::string("@reboot env x workspace auto work"),                     // without the mark
           std::string("@reboot env # overcap workspace auto 00ff"),
       }) {
    EXPECT_EQ(CrontabWithout(line + "\n", "00ff"), line + "\n");
  }
}

TEST(IsInCrontab, KnowsExactlyTheStoredWords) {
  const std::string crontab = StrCat("# mine\n", kLine, "\n");
  EXPECT_TRUE(IsInCrontab(crontab, kArgv));
  EXPECT_FALSE(IsInCrontab(crontab, Words{"/opt/overcap", "workspace", "auto", "work", "--on-change"}));
  EXPECT_FALSE(IsInCrontab("", kArgv));
  EXPECT_FALSE(IsInCrontab(StrCat("#", kLine), kArgv));
  const std::string odd =
      "@reboot env '/opt/100\\% a' workspace auto w --on-change # overcap workspace auto 1";
  EXPECT_TRUE(IsInCrontab(odd, Words{"/opt/100% a", "workspace", "auto", "w", "--on-change"}));
}

// A program `crontab` that runs `script`.
class WithCrontab : public testing::Test {
 protected:
  void Say(const std::string& script) {
    ASSERT_TRUE(PosixFiles().WriteAtomic(folder_ / "crontab", "#!/bin/sh\n" + script, false));
    ASSERT_EQ(chmod((folder_ / "crontab").c_str(), 0755), 0);
  }

  TempFolder folder_;
  Variables variables_{{StrCat("PATH=", folder_.Path(), ":/usr/bin:/bin")}};
};

TEST_F(WithCrontab, RemovesTheLineOnce) {
  const std::string kept = folder_ / "kept";
  Say(StrCat("if [ \"$1\" = -l ]; then cat '", kept, "'; else cat > '", kept, "'; fi\n"));
  ASSERT_TRUE(PosixFiles().WriteAtomic(kept, StrCat("# mine\n", kLine, "\n"), false));
  EXPECT_EQ(RemoveCrontabLine(variables_, "00fe"), false);
  EXPECT_EQ(RemoveCrontabLine(variables_, "00ff"), true);
  EXPECT_EQ(*PosixFiles().Read(kept), "# mine\n");
  EXPECT_EQ(RemoveCrontabLine(variables_, "00ff"), false);
}

TEST_F(WithCrontab, WithoutACrontabThereIsNoLine) {
  Say("[ \"$1\" = -l ] || touch \"$0.written\"; echo 'no crontab for ann' >&2; exit 1\n");
  EXPECT_EQ(RemoveCrontabLine(variables_, "00ff"), false);
  EXPECT_FALSE(PosixFiles().Exists(folder_ / "crontab.written"));
  const TempFolder empty;
  EXPECT_EQ(RemoveCrontabLine(Variables({StrCat("PATH=", empty.Path())}), "00ff"), false);
}

TEST_F(WithCrontab, OneThatCannotBeWrittenIsAnError) {
  Say(StrCat("[ \"$1\" = -l ] && { echo \"", kLine, "\"; exit 0; }; echo 'disk full' >&2; exit 1\n"));
  const auto removed = RemoveCrontabLine(variables_, "00ff");
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, ErrorCode::kDenied);
  EXPECT_NE(removed.error().message.find("disk full"), std::string::npos) << removed.error().message;
}

}  // namespace
}  // namespace overcap
