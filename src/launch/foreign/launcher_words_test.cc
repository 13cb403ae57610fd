// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/launcher_words.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "base/text.h"

namespace overcap {
namespace {

// What the real program of that version printed.
std::string Recorded(const std::string& name) {
  std::ifstream file(StrCat(OVERCAP_TEST_DATA, "/", name));
  EXPECT_TRUE(file) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<LauncherFinding> FindingsOf(const std::string& text) {
  LauncherWords words;
  for (const char byte : text) words.Feed({&byte, 1});
  words.End();
  return words.findings();
}

// "n2/3: 7" for each: host, rank, exit status or signal.
std::vector<std::string> Summary(const std::string& text) {
  std::vector<std::string> out;
  for (const LauncherFinding& each : FindingsOf(text)) {
    if (each.host_failed) {
      out.push_back(StrCat(each.host, " failed"));
    } else {
      out.push_back(StrCat(each.host, "/", each.rank, each.end->signal != 0 ? ": signal " : ": exit ",
                           each.end->signal != 0 ? each.end->signal : each.end->exit_status));
    }
  }
  return out;
}

using Lines = std::vector<std::string>;

TEST(LauncherWords, UnderstandsSrun) {
  EXPECT_EQ(Lines({"n2/3: exit 7"}), Summary(Recorded("slurm-22.05.8/srun-exit-7.txt")));
  EXPECT_EQ(Lines({"n1/0: exit 7", "n1/1: exit 7"}), Summary(Recorded("slurm-22.05.8/srun-exit-two.txt")));
  EXPECT_EQ(Lines({"n1/0: exit 9", "n1/2: exit 9", "n1/3: exit 9"}),
            Summary(Recorded("slurm-22.05.8/srun-exit-three.txt")));
  EXPECT_EQ(Lines({"n2/3: signal 9"}), Summary(Recorded("slurm-22.05.8/srun-signal-9.txt")));
  EXPECT_EQ(Lines({"n1/1: signal 11"}), Summary(Recorded("slurm-22.05.8/srun-signal-11.txt")));
  EXPECT_EQ("n2/3: exit 7", Summary(Recorded("slurm-22.05.8/srun-kill-on-bad.txt")).at(0));
}

TEST(LauncherWords, UnderstandsThatSlurmLostANode) {
  EXPECT_EQ("n2 failed", Summary(Recorded("slurm-22.05.8/srun-node-failed.txt")).at(0));
  EXPECT_EQ(Lines({"n2 failed"}), Summary("srun: error: Task launch for StepId=3.0 failed on node n2: "
                                          "Communication connection failure\n"));
}

TEST(LauncherWords, UnderstandsThatSlurmSawNoMoreMemory) {
  const auto findings = FindingsOf("srun: error: n1: task 0: Out Of Memory\n");
  ASSERT_EQ(1u, findings.size());
  EXPECT_TRUE(findings[0].out_of_memory);
  EXPECT_EQ(9, findings[0].end->signal);
}

TEST(LauncherWords, UnderstandsOpenMpi) {
  EXPECT_EQ(Lines({"/1: exit 7"}), Summary(Recorded("openmpi-4.1.4/exit-7.txt")));
  EXPECT_EQ(Lines({"n1/1: signal 9"}), Summary(Recorded("openmpi-4.1.4/signal-9.txt")));
  const auto aborted = FindingsOf(Recorded("openmpi-4.1.4/mpi-abort-7.txt"));
  ASSERT_FALSE(aborted.empty());
  EXPECT_EQ(1, aborted[0].rank);
  EXPECT_TRUE(aborted[0].aborted);
  EXPECT_EQ((ProcessEnd{7, 0}), aborted[0].end);
}

TEST(LauncherWords, UnderstandsOpenMpi5) {
  EXPECT_EQ(Lines({"/3: exit 7"}), Summary("   Process name: [prterun-n1-4711@1,3]\n   Exit code:    7\n"));
}

TEST(LauncherWords, UnderstandsThatOpenMpiLostAHost) {
  EXPECT_EQ(Lines({"ml2 failed"}), Summary("ORTE has lost communication with a remote daemon.\n\n"
                                           "  HNP daemon   : [[7491,0],0] on node vm\n"
                                           "  Remote daemon: [[7491,0],1] on node ml2\n"));
}

TEST(LauncherWords, UnderstandsHydra) {
  const auto killed = FindingsOf(Recorded("mpich-4.0.2/signal-11.txt"));
  ASSERT_EQ(1u, killed.size());
  EXPECT_GT(killed[0].pid, 0);
  EXPECT_EQ("n1", killed[0].host);
  EXPECT_EQ(11, killed[0].end->signal);
  const auto aborted = FindingsOf(Recorded("mpich-4.0.2/mpi-abort-7.txt"));
  ASSERT_EQ(1u, aborted.size());
  EXPECT_EQ(1, aborted[0].rank);
  EXPECT_TRUE(aborted[0].aborted);
}

// As its users quote it; there is no PALS to record it from.
TEST(LauncherWords, UnderstandsPals) {
  EXPECT_EQ(Lines({"x3006c0s13b1n0.hsn/3: exit 7", "nid001/0: signal 15"}),
            Summary("x3006c0s13b1n0.hsn: rank 3 exited with code 7\nnid001: rank 0 died from signal 15\n"));
}

TEST(LauncherWords, UnderstandsSsh) {
  EXPECT_EQ(Lines({"ml9 failed", "nosuch failed"}),
            Summary("ssh: connect to host ml9 port 22: Connection timed out\r\n"
                    "ssh: Could not resolve hostname nosuch: Name or service not known\r\n"));
}

TEST(LauncherWords, OtherWordsMeanNothing) {
  EXPECT_EQ(Lines(), Summary("srun: job 7 queued and waiting for resources\nsrun: error: n1: odd\n"
                             "Exit code: 7\nwith errorcode 3.\nrank 3 exited\nPID 3 RUNNING AT n1\n"));
}

TEST(LauncherWords, KeepsTheLastLinesThatSaySomething) {
  LauncherWords words;
  words.Feed("------\none\n\ntwo\n====\nthree");
  words.End();
  EXPECT_EQ(Lines({"two", "three"}), words.LastLines(2));
}

}  // namespace
}  // namespace overcap
