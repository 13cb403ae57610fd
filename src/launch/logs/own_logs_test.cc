// SPDX-License-Identifier: Apache-2.0
// Logs that ranks write themselves, beside what is appended for them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "launch/logs/rank_logs.h"
#include "sys/fd.h"
#include "sys/posix_files.h"
#include "sys/testing/in_child.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

std::string Read(const std::string& path) {
  return PosixFiles().Read(path).value_or("absent");
}

void RankWrites(const RankLogs& logs, int rank, std::string_view text) {
  EXPECT_EQ(write(logs.FileOf(rank), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

// The streams of all bytes, as the times tell them: "1121..".
std::string StreamsOf(const std::string& times, size_t size) {
  std::string streams;
  char stream = '?';
  for (const std::string& line : Split(times, '\n')) {
    const std::vector<std::string> words = Split(line, ' ');
    if (words.size() != 3) continue;
    streams.resize(static_cast<size_t>(ParseInt(words[0]).value_or(0)), stream);
    stream = words[1][0];
  }
  streams.resize(size, stream);
  return streams;
}

// A rank that writes 1s to stdout and 2s to stderr says itself which is which.
void ExpectEachByteOnItsStream(const TempFolder& folder) {
  const std::string text = Read(folder / "rank-0.log");
  EXPECT_EQ(StreamsOf(Read(folder / "rank-0.times"), text.size()), text);
}

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 0777;
}

TEST(OwnLogs, WhatIsNotAppendedForARankIsItsStdout) {
  const TempFolder folder;
  auto logs = RankLogs::Make(folder.Path(), 2, Tee::kNone);
  logs->LetRanksWrite(0);
  RankWrites(*logs, 1, "one\n");
  EXPECT_TRUE(logs->LookAtAll(1'000'000));
  RankWrites(*logs, 1, "two\n");
  logs->Write(1, 2, "bad\n", 2'000'000);
  RankWrites(*logs, 1, "three\n");
  logs->TakeBack(3'000'000);
  EXPECT_EQ(Read(logs->PathOf(1)), "one\ntwo\nbad\nthree\n");
  EXPECT_EQ(Read(folder / "rank-1.times"), "0 1 1000000\n4 1 2000000\n8 2 2000000\n12 1 3000000\n");
  EXPECT_EQ(Read(folder / "rank-0.times"), "absent");
  EXPECT_EQ(logs->LastLines(1, 2), "bad\nthree\n");
}

RC_GTEST_PROP(OwnLogs, EachByteIsOnItsStreamInWhateverOrderTheyCome, ()) {
  const TempFolder folder;
  auto logs = RankLogs::Make(folder.Path(), 1, Tee::kNone);
  logs->LetRanksWrite(0);
  int64_t now_us = 1;
  for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 30))) {
    now_us += step * 200;
    if (step % 3 == 0) RankWrites(*logs, 0, std::string(step, '1'));
    if (step % 3 == 1) logs->Write(0, 2, std::string(step, '2'), now_us);
    if (step % 3 == 2) logs->LookAtAll(now_us);
  }
  logs->TakeBack(now_us);
  ExpectEachByteOnItsStream(folder);
}

TEST(OwnLogs, EachByteIsOnItsStreamWhenBothAreWrittenAtTheSameTime) {
  const TempFolder folder;
  auto logs = RankLogs::Make(folder.Path(), 1, Tee::kNone);
  logs->LetRanksWrite(0);
  const pid_t rank = fork();
  if (rank == 0) {
    const std::string ones(700, '1');
    for (int i = 0; i < 20'000; ++i) {
      if (write(logs->FileOf(0), ones.data(), 1 + i % 700) < 0) _exit(1);
    }
    _exit(0);
  }
  int64_t now_us = 1, written = 0;
  const std::string twos(100, '2');
  int status = -1;
  for (; waitpid(rank, &status, WNOHANG) == 0 && written < 1 << 24; now_us += 300) {
    logs->Write(0, 2, twos, now_us);
    written += static_cast<int64_t>(twos.size());
  }
  if (status == -1) waitpid(rank, &status, 0);
  EXPECT_EQ(status, 0);
  logs->TakeBack(now_us);
  ExpectEachByteOnItsStream(folder);
}

TEST(OwnLogs, CannotBeOpenedAnewWhileRanksWriteThem) {
  const TempFolder folder;
  auto logs = RankLogs::Make(folder.Path(), 1, Tee::kNone);
  EXPECT_EQ(logs->FileOf(0), -1);
  logs->LetRanksWrite(0);
  EXPECT_NE(fcntl(logs->FileOf(0), F_GETFL) & O_APPEND, 0);
  EXPECT_EQ(ModeOf(logs->PathOf(0)), 0400u);
  logs->TakeBack(1);
  EXPECT_EQ(ModeOf(logs->PathOf(0)), 0600u);
  EXPECT_EQ(logs->FileOf(0), -1);
}

TEST(OwnLogs, ALogThatWasEmptiedBeginsAnew) {
  const TempFolder folder;
  auto logs = RankLogs::Make(folder.Path(), 1, Tee::kNone);
  logs->LetRanksWrite(0);
  RankWrites(*logs, 0, "long ago\n");
  EXPECT_TRUE(logs->LookAtAll(1'000'000));
  ASSERT_EQ(ftruncate(logs->FileOf(0), 0), 0);
  RankWrites(*logs, 0, "new\n");
  EXPECT_TRUE(logs->LookAtAll(2'000'000));
  ASSERT_EQ(ftruncate(logs->FileOf(0), 0), 0);
  logs->Write(0, 2, "err\n", 3'000'000);
  RankWrites(*logs, 0, "end\n");
  logs->TakeBack(4'000'000);
  EXPECT_EQ(Read(logs->PathOf(0)), "err\nend\n");
  EXPECT_EQ(logs->LastLines(0, 20), "err\nend\n");
  EXPECT_NE(logs->Problem().find("emptied its own log"), std::string::npos) << logs->Problem();
}

TEST(OwnLogs, TimesOfALogThatWasEmptiedBeginAnew) {
  const TempFolder folder;
  auto logs = RankLogs::Make(folder.Path(), 1, Tee::kNone);
  logs->LetRanksWrite(0);
  RankWrites(*logs, 0, "long ago\n");
  logs->LookAtAll(1'000'000);
  ASSERT_EQ(ftruncate(logs->FileOf(0), 0), 0);
  RankWrites(*logs, 0, "new\n");
  logs->TakeBack(2'000'000);
  EXPECT_EQ(Read(folder / "rank-0.times"), "0 1 2000000\n");
}

TEST(OwnLogs, AreShownOnTheStreamsTheyWereWrittenTo) {
  const TempFolder folder;
  const std::string story = InChild([&] {
    const std::string out = folder / "stdout", err = folder / "stderr";
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), 2);
    auto logs = RankLogs::Make(folder.Path(), 2, Tee::kRank0);
    logs->LetRanksWrite(0);
    RankWrites(*logs, 0, "a");
    RankWrites(*logs, 1, "hidden");
    logs->Write(0, 2, "b", 1);
    logs->Show();
    RankWrites(*logs, 0, "c");
    logs->TakeBack(2);
    logs->ShowRest([] { return false; });
    return StrCat("out:", Read(out), "|err:", Read(err));
  });
  EXPECT_EQ(story, "out:ac|err:b");
}

// SIGXFSZ would kill a rank for what it prints.
TEST(OwnLogs, ALimitOfFileSizesKeepsThePipes) {
  const TempFolder folder;
  const std::string story = InChild([&] {
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_FSIZE, &limit);
    auto logs = RankLogs::Make(folder.Path(), 1, Tee::kNone);
    logs->LetRanksWrite(0);
    std::vector<pollfd> fds;
    return StrCat(logs->FileOf(0), " ", logs->PrepareLook(&fds) == std::numeric_limits<int64_t>::max(), " ",
                  fds.size(), " ", ModeOf(logs->PathOf(0)) == 0600);
  });
  EXPECT_EQ(story, "-1 1 0 1");
}

TEST(OwnLogs, AreLookedAtWhenTheyGrow) {
  const TempFolder folder;
  auto logs = RankLogs::Make(folder.Path(), 3, Tee::kNone);
  logs->LetRanksWrite(0);
  EXPECT_FALSE(logs->Look(10, 1'000'000));
  RankWrites(*logs, 2, "text");
  std::vector<pollfd> fds;
  const int64_t until = logs->PrepareLook(&fds);
  if (!fds.empty()) {
    EXPECT_EQ(poll(fds.data(), fds.size(), 20'000), 1);
  }
  EXPECT_TRUE(logs->Look(fds.empty() ? until : 20, 2'000'000));
  EXPECT_EQ(logs->LastOutputUs(), 2'000'000);
}

TEST(OwnLogs, SomeMegabytesAreShownAtATime) {
  const TempFolder folder;
  const std::string story = InChild([&] {
    const std::string out = folder / "stdout";
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1);
    auto logs = RankLogs::Make(folder.Path(), 1, Tee::kRank0);
    logs->LetRanksWrite(0);
    RankWrites(*logs, 0, std::string(20 << 20, 'x'));
    logs->TakeBack(1);
    logs->Show();
    const size_t first = Read(out).size();
    std::vector<pollfd> fds;
    const bool goes_on = logs->WantsToShow(&fds) && poll(fds.data(), fds.size(), 0) == 1;
    int asked = 0;
    logs->ShowRest([&] { return ++asked > 0; });
    return StrCat(first<8 << 20, " ", goes_on, " ", asked> 1, " ", Read(out).size() == 20 << 20);
  });
  EXPECT_EQ(story, "1 1 1 1");
}

}  // namespace
}  // namespace overcap
