// SPDX-License-Identifier: Apache-2.0
#include "launch/logs/rank_logs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/fd.h"
#include "sys/posix_files.h"
#include "sys/testing/in_child.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

std::string Read(const std::string& path) {
  return PosixFiles().Read(path).value_or("absent");
}

TEST(RankLogs, KeepsTextAndTimesApart) {
  const TempFolder folder;
  auto logs = RankLogs::Make(folder.Path(), 2, Tee::kNone);
  ASSERT_TRUE(logs);
  logs->Write(1, 1, "one\n", 1'000'000);
  logs->Write(1, 1, "two\n", 1'000'400);  // within the same millisecond
  logs->Write(1, 2, "bad\n", 1'000'500);
  logs->Write(1, 2, "worse\n", 1'005'000);
  EXPECT_EQ(Read(logs->PathOf(1)), "one\ntwo\nbad\nworse\n");
  EXPECT_EQ(Read(folder / "rank-1.times"), "0 1 1000000\n8 2 1000500\n12 2 1005000\n");
  EXPECT_EQ(Read(logs->PathOf(0)), "");
  EXPECT_EQ(Read(folder / "rank-0.times"), "absent");
  EXPECT_EQ(logs->LastOutputUs(), 1'005'000);
}

TEST(RankLogs, SaysWhenTheClockHasGoneBack) {
  const TempFolder folder;
  auto logs = RankLogs::Make(folder.Path(), 1, Tee::kNone);
  logs->Write(0, 1, "a", 5'000'000);
  logs->Write(0, 1, "b", 4'000'000);
  EXPECT_EQ(Read(folder / "rank-0.times"), "0 1 5000000\n1 1 4000000\n");
}

TEST(RankLogs, GivesTheLastLinesForPeople) {
  const TempFolder folder;
  auto logs = RankLogs::Make(folder.Path(), 1, Tee::kNone);
  EXPECT_EQ(logs->LastLines(0, 20), "");
  for (int line = 0; line < 50; ++line) logs->Write(0, 1, StrCat("line ", line, "\n"), 1);
  EXPECT_EQ(logs->LastLines(0, 2), "line 48\nline 49\n");
  logs->Write(0, 2, "10%\r20%\r30%\r\n\x01\xff no end", 1);
  EXPECT_EQ(logs->LastLines(0, 2), "30%\n\xEF\xBF\xBD\xEF\xBF\xBD no end\n");
  logs->Write(0, 1, std::string(200'000, 'x'), 1);
  EXPECT_LT(logs->LastLines(0, 20).size(), 50'000u);
}

TEST(RankLogs, FewerLinesThanAskedAreAllGiven) {
  const TempFolder folder;
  auto logs = RankLogs::Make(folder.Path(), 1, Tee::kNone);
  logs->Write(0, 1, "only\n", 1);
  EXPECT_EQ(logs->LastLines(0, 20), "only\n");
}

TEST(RankLogs, ATimeThatDidNotFitOnTheDiskLeavesNothingInTheMiddle) {
  const TempFolder folder;
  EXPECT_EQ(InChild([&] {
              signal(SIGXFSZ, SIG_IGN);
              auto logs = RankLogs::Make(folder.Path(), 1, Tee::kNone);
              rlimit limit{};
              getrlimit(RLIMIT_FSIZE, &limit);
              const rlimit small{15, limit.rlim_max};
              setrlimit(RLIMIT_FSIZE, &small);
              logs->Write(0, 1, "a", 1'000'000);
              logs->Write(0, 1, "b", 2'000'000);
              setrlimit(RLIMIT_FSIZE, &limit);
              logs->Write(0, 1, "c", 3'000'000);
              return Read(folder / "rank-0.times");
            }),
            "0 1 1000000\n2 1 3000000\n");
}

// What a process whose stdout and stderr are these files shows.
std::string Shown(const TempFolder& folder, Tee tee, const std::function<void(RankLogs*)>& act) {
  return InChild([&] {
    const std::string out = folder / "stdout", err = folder / "stderr";
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), 2);
    auto logs = RankLogs::Make(folder.Path(), 3, tee);
    act(&*logs);
    logs->ShowRest([] { return false; });
    return StrCat("out:", Read(out), "|err:", Read(err));
  });
}

TEST(RankLogs, ShowsRankZeroOnTheStreamsItWroteTo) {
  const TempFolder folder;
  EXPECT_EQ(Shown(folder, Tee::kRank0,
                  [](RankLogs* logs) {
                    logs->Write(0, 1, "a", 1);
                    logs->Write(1, 1, "hidden", 1);
                    logs->Write(0, 2, "b", 1);
                    logs->Show();
                    logs->Write(0, 1, "c", 1);
                  }),
            "out:ac|err:b");
}

TEST(RankLogs, ShowsWholeLinesOfAllRanksWithTheRankBeforeThem) {
  const TempFolder folder;
  EXPECT_EQ(Shown(folder, Tee::kAll,
                  [](RankLogs* logs) {
                    logs->Write(1, 1, "first ", 1);
                    logs->Show();
                    logs->Write(2, 1, "x\ny\nrest", 1);
                    logs->Show();
                    logs->Write(1, 1, "line\n", 1);
                    logs->Show();
                  }),
            "out:[2] x\n[2] y\n[1] first line\n[2] rest\n|err:");
}

TEST(RankLogs, ShowsTheStreamsOfEachRankThatAreAskedFor) {
  const TempFolder folder;
  EXPECT_EQ(Shown(folder, Tee::kNone,
                  [](RankLogs* logs) {
                    logs->ShowAs({{3, 1, "[a0]:"}, {2, 0, "[a1]:"}, {}});
                    for (int rank = 0; rank < 3; ++rank) {
                      logs->Write(rank, 1, StrCat("out ", rank, "\n"), 1);
                      logs->Write(rank, 2, StrCat("err ", rank, "\n"), 1);
                      logs->Write(rank, 1, "more\n", 1);
                      logs->Show();
                    }
                  }),
            "out:[a0]:out 0\n[a0]:more\n|err:err 0\nerr 1\n");
}

TEST(RankLogs, AReaderThatDoesNotReadStopsNothing) {
  const TempFolder folder;
  const std::string story = InChild([&] {
    int ends[2];
    if (pipe2(ends, 0) != 0) return std::string("no pipe");
    dup2(ends[1], 1);
    auto logs = RankLogs::Make(folder.Path(), 1, Tee::kRank0);
    for (int i = 0; i < 100; ++i) {
      logs->Write(0, 1, std::string(10'000, 'x'), 1);
      logs->Show();
    }
    std::vector<pollfd> fds;
    const bool wants = logs->WantsToShow(&fds);
    int asked = 0;
    logs->ShowRest([&] { return ++asked > 1; });
    return StrCat(static_cast<int>(wants), " ", fds.size(), " ", Read(logs->PathOf(0)).size());
  });
  EXPECT_EQ(story, "1 1 1000000");
}

// A line longer than the pipe, and short lines that their prefixes make longer than it.
TEST(RankLogs, AReaderThatDoesNotReadStopsNothingWhenAllRanksAreShown) {
  const TempFolder folder;
  const std::string story = InChild([&] {
    int ends[2];
    if (pipe2(ends, 0) != 0) return std::string("no pipe");
    dup2(ends[1], 1);
    auto logs = RankLogs::Make(folder.Path(), 2, Tee::kAll);
    std::string lines;
    for (int i = 0; i < 10'000; ++i) lines += "y\n";
    for (int i = 0; i < 20; ++i) {
      logs->Write(0, 1, std::string(60'000, 'x') + "\n", 1);
      logs->Write(1, 1, lines, 1);
      logs->Show();
    }
    std::vector<pollfd> fds;
    const bool wants = logs->WantsToShow(&fds);
    logs->ShowRest([] { return true; });
    return StrCat(static_cast<int>(wants), " ", fds.size(), " ", Read(logs->PathOf(0)).size());
  });
  EXPECT_EQ(story, "1 1 1200020");
}

// It may have read between the look at it and the wait for it: then nothing else would wake us.
TEST(RankLogs, SomethingThatIsNotShownYetIsWaitedForEvenWhenTheReaderHasJustRead) {
  const TempFolder folder;
  const std::string story = InChild([&] {
    int ends[2];
    if (pipe2(ends, 0) != 0) return std::string("no pipe");
    dup2(ends[1], 1);
    auto logs = RankLogs::Make(folder.Path(), 1, Tee::kRank0);
    logs->Write(0, 1, std::string(100'000, 'x'), 1);
    logs->Show();
    std::string taken(1 << 20, '\0');
    const ssize_t first = read(ends[0], taken.data(), taken.size());
    std::vector<pollfd> fds;
    const bool wants = logs->WantsToShow(&fds);
    logs->Show();
    const ssize_t second = read(ends[0], taken.data(), taken.size());
    std::vector<pollfd> after;
    const bool wants_after = logs->WantsToShow(&after);
    return StrCat(first + second, " ", static_cast<int>(wants), fds.size(), " ",
                  static_cast<int>(wants_after), after.size());
  });
  EXPECT_EQ(story, "100000 11 00");
}

// A terminal polls writable as soon as it takes one byte.
TEST(RankLogs, ATerminalThatNobodyReadsStopsNothing) {
  const TempFolder folder;
  const std::string story = InChild([&] {
    const Fd terminal(posix_openpt(O_RDWR | O_NOCTTY));
    if (!terminal || grantpt(terminal.Get()) != 0 || unlockpt(terminal.Get()) != 0)
      return std::string("no pty");
    const Fd end(open(ptsname(terminal.Get()), O_RDWR | O_NOCTTY));
    dup2(end.Get(), 1);
    auto logs = RankLogs::Make(folder.Path(), 1, Tee::kRank0);
    alarm(20);
    for (int i = 0; i < 100; ++i) {
      logs->Write(0, 1, std::string(3'001, 'x') + "\n", 1);
      logs->Show();
    }
    logs->ShowRest([] { return true; });
    return Read(logs->PathOf(0)).size() == 300'200 ? std::string("kept") : std::string("lost");
  });
  EXPECT_EQ(story, "kept");
}

TEST(RankLogs, AFullDiskDropsOutputAndSaysSo) {
  const Fd full(open("/dev/full", O_WRONLY));
  const TempFolder folder;
  ASSERT_EQ(symlink("/dev/full", (folder / "rank-0.log").c_str()), 0);
  auto logs = RankLogs::Make(folder.Path(), 1, Tee::kRank0);
  ASSERT_TRUE(logs);
  logs->Write(0, 1, "lost", 1);
  EXPECT_NE(logs->Problem().find("rank 0 was dropped"), std::string::npos) << logs->Problem();
}

TEST(RankLogs, OutputThatCannotBeShownIsInTheLogAndSaidSo) {
  const TempFolder folder;
  const std::string story = InChild([&] {
    dup2(open("/dev/full", O_WRONLY), 1);
    auto logs = RankLogs::Make(folder.Path(), 1, Tee::kRank0);
    logs->Write(0, 1, "kept", 1);
    logs->ShowRest([] { return false; });
    return StrCat(Read(logs->PathOf(0)), ": ", logs->Problem());
  });
  EXPECT_EQ(
      story,
      "kept: stdout cannot be written: No space left on device; what it should have shown is in the logs");
}

}  // namespace
}  // namespace overcap
