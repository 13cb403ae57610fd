// SPDX-License-Identifier: Apache-2.0
#include "sys/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <signal.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/proc_table.h"
#include "sys/testing/in_child.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

// Writes down what it is told.
class Diary : public GroupObserver {
 public:
  void OnStarted(const std::vector<pid_t>& pids) override { text_ += StrCat("started ", pids.size(), "; "); }
  void OnMemberEnd(int member, const ProcessEnd& end) override {
    text_ += StrCat("end ", member, " ", end.exit_status, " ", end.signal, "; ");
  }
  void OnNote(const std::string& text) override { text_ += StrCat("note ", text, "; "); }
  const std::string& Text() const { return text_; }

 private:
  std::string text_;
};

std::string CauseName(StopCause cause) {
  const char* const names[] = {"none", "failed", "cancelled", "time", "memory"};
  return names[static_cast<int>(cause)];
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    times_.grace = 300'000;
    times_.linger = 100'000;
    times_.stray_grace = 100'000;
    limits_.time_us = 30'000'000;
  }

  std::string LogPath(size_t member) const { return (folder_ / StrCat("log-", member)); }

  // Runs one /bin/sh per script as a group and tells the story and the end.
  std::string Run(const std::vector<std::string>& scripts) {
    return InChild([&] { return RunHere(scripts); });
  }

  std::string RunHere(const std::vector<std::string>& scripts) {
    auto supervisor = Supervisor::Make(clock_, times_);
    if (!supervisor) return supervisor.error().message;
    std::vector<Fd> logs;
    std::vector<GroupMember> members;
    for (size_t i = 0; i < scripts.size(); ++i) {
      logs.emplace_back(open(LogPath(i).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      GroupMember member;
      member.request.argv = {"/bin/sh", "-c", scripts[i]};
      if (scripts[i] == "no such") member.request.argv = {"no-such-program"};
      member.request.env = {"PATH=/usr/bin:/bin", StrCat("DIR=", folder_.Path())};
      member.log_fd = logs.back().Get();
      members.push_back(std::move(member));
    }
    Diary diary;
    const GroupEnd end = (*supervisor)->Run(&members, limits_, &diary);
    const bool childless = waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
    return StrCat(diary.Text(), CauseName(end.cause), " ", end.first_failed, " ", end.end.exit_status, " ",
                  end.end.signal, childless ? "" : " CHILDREN LEFT");
  }

  // The log without what the shell says of a `sleep` that got the TERM too.
  std::string Saved(size_t member) const {
    std::string log = ReadAll(LogPath(member));
    if (log.starts_with("Terminated\n")) log.erase(0, log.find('\n') + 1);
    return log;
  }

  bool IsGone(const std::string& pid_file) const {
    const auto pid = ParseInt(Trim(ReadAll(folder_ / pid_file)));
    return pid && !Identify(static_cast<pid_t>(*pid));
  }

  TempFolder folder_;
  PosixClock clock_;
  SupervisorTimes times_;
  GroupLimits limits_;
};

TEST_F(SupervisorTest, RunsAMemberToItsEnd) {
  EXPECT_EQ(Run({"echo out; echo err >&2"}), "started 1; end 0 0 0; none -1 0 0");
  EXPECT_EQ(ReadAll(LogPath(0)), "out\nerr\n");
}

TEST_F(SupervisorTest, KeepsBytesAsTheyAre) {
  EXPECT_EQ(Run({R"(printf 'a\000b\377\r\nno newline')"}), "started 1; end 0 0 0; none -1 0 0");
  EXPECT_EQ(ReadAll(LogPath(0)), std::string("a\0b\xff\r\nno newline", 16));
}

TEST_F(SupervisorTest, KeepsAHundredMegabytes) {
  EXPECT_EQ(Run({"head -c 100000000 /dev/zero"}), "started 1; end 0 0 0; none -1 0 0");
  struct stat info;
  ASSERT_EQ(stat(LogPath(0).c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 100'000'000);
}

TEST_F(SupervisorTest, ReportsTheFirstFailureAndStopsTheOthers) {
  EXPECT_EQ(Run({"exec sleep 100", "exit 7"}), "started 2; end 1 7 0; end 0 143 15; failed 1 7 0");
}

// The supervisor is stopped until both are dead: member 1 first, member 0 because of that. Once member 2 runs
// the deaths of the others are watched for.
TEST_F(SupervisorTest, BlamesTheMemberThatDiedFirstAlsoWhenItSeesTwoDeathsAtOnce) {
  const std::string dead = "until grep -q '^State:.Z' /proc/$who/status; do sleep 0.01; done;";
  const std::string follower = StrCat("until [ -e $DIR/pid ]; do sleep 0.01; done; who=$(cat $DIR/pid); ",
                                      dead, "who=$$; (", dead, " kill -CONT $PPID) & exit 6");
  const std::string leader =
      "until [ -e $DIR/go ]; do sleep 0.01; done; kill -STOP $PPID; echo $$ > $DIR/new; mv $DIR/new "
      "$DIR/pid; exit 5";
  EXPECT_EQ(Run({follower, leader, "touch $DIR/go; exec sleep 100"}),
            "started 3; end 1 5 0; end 0 6 0; end 2 143 15; failed 1 5 0");
}

TEST_F(SupervisorTest, KillsMembersThatIgnoreTerm) {
  const std::string stubborn = "trap '' TERM; touch $DIR/ready; while :; do sleep 0.05; done";
  EXPECT_EQ(Run({stubborn, "while ! [ -e $DIR/ready ]; do sleep 0.01; done; exit 3"}),
            "started 2; end 1 3 0; end 0 137 9; failed 1 3 0");
}

TEST_F(SupervisorTest, StopsAStoppedMember) {
  EXPECT_EQ(Run({"kill -TERM $PPID; kill -STOP $$; sleep 100"}),
            "started 1; end 0 143 15; cancelled -1 143 15");
}

TEST_F(SupervisorTest, LetsMembersEndInTheirOwnWayWhenCancelled) {
  EXPECT_EQ(Run({"trap 'echo saved; exit 5' TERM; kill -TERM $PPID; while :; do sleep 0.01; done"}),
            "started 1; end 0 5 0; cancelled -1 5 0");
  EXPECT_EQ(Saved(0), "saved\n");
}

// The shell dies at once, its child needs the grace to save its work.
TEST_F(SupervisorTest, GivesTheGraceToChildrenOfAMemberToo) {
  times_.grace = 20'000'000;
  Run(
      {"sh -c 'trap \"sleep 0.3; echo saved; exit 0\" TERM; kill -TERM $0; while :; do sleep 0.01; done' "
       "$PPID"
       " & wait"});
  EXPECT_EQ(Saved(0), "saved\n");
}

TEST_F(SupervisorTest, PassesTheWarningOn) {
  EXPECT_EQ(Run({"trap 'echo warned; exit 0' USR1; kill -USR1 $PPID; while :; do sleep 0.01; done"}),
            "started 1; end 0 0 0; none -1 0 0");
  EXPECT_EQ(ReadAll(LogPath(0)), "warned\n");
}

// A shell without a trap would die of it, and so would the sleep.
TEST_F(SupervisorTest, WarnsWhatHandlesItAndNothingElse) {
  EXPECT_EQ(Run({"sh -c 'trap \"touch $DIR/warned\" USR1; kill -USR1 $0; while ! [ -e $DIR/warned ]; do "
                 "sleep 0.01; "
                 "done' $PPID & wait; echo unhurt"}),
            "started 1; end 0 0 0; none -1 0 0");
  EXPECT_EQ(ReadAll(LogPath(0)), "unhurt\n");
}

TEST_F(SupervisorTest, AWarningThatIsNotHandledChangesNothing) {
  EXPECT_EQ(Run({"kill -USR1 $PPID; sleep 0.2; echo unhurt"}), "started 1; end 0 0 0; none -1 0 0");
  EXPECT_EQ(ReadAll(LogPath(0)), "unhurt\n");
}

TEST_F(SupervisorTest, AShellWithAnExitTrapDoesNotDieOfTheWarning) {
  EXPECT_EQ(Run({"exec bash -c 'trap \"echo bye\" EXIT; kill -USR1 $PPID; sleep 0.2; echo unhurt'"}),
            "started 1; end 0 0 0; none -1 0 0");
  EXPECT_EQ(ReadAll(LogPath(0)), "unhurt\nbye\n");
}

TEST_F(SupervisorTest, WarnsTheMemberAloneWhereAsked) {
  limits_.warn_members_only = true;
  EXPECT_EQ(Run({"trap 'echo shell' USR1; sh -c 'trap \"echo child\" USR1; touch $DIR/up; sleep 0.5' & "
                 "while ! [ -e $DIR/up ]; do sleep 0.01; done; kill -USR1 $PPID; wait; wait"}),
            "started 1; end 0 0 0; none -1 0 0");
  EXPECT_EQ(ReadAll(LogPath(0)), "shell\n");
}

// The grace time after TERM is 300 ms here; it begins with the stop, not with the warning.
TEST_F(SupervisorTest, TermComesWithAnUnhandledWarningWhereAStopFollows) {
  limits_.term_when_unheard = true;
  EXPECT_EQ(
      Run({"trap 'sleep 0.6; echo saved; exit 0' TERM; kill -USR1 $PPID; while :; do sleep 0.01; done"}),
      "started 1; end 0 0 0; cancelled -1 0 0");
  EXPECT_EQ(Saved(0), "saved\n");
}

TEST_F(SupervisorTest, TheStopThatFollowsTheWarningEndsTheGrace) {
  limits_.term_when_unheard = true;
  EXPECT_EQ(Run({"trap 'kill -TERM $PPID' TERM; kill -USR1 $PPID; while :; do sleep 0.01; done"}),
            "started 1; end 0 137 9; cancelled -1 137 9");
}

TEST_F(SupervisorTest, EnforcesTheTimeLimit) {
  limits_.time_us = 50'000;
  EXPECT_EQ(Run({"exec sleep 100"}), "started 1; end 0 143 15; time -1 143 15");
}

TEST_F(SupervisorTest, KillsAtOnceOverTheMemoryLimit) {
  times_.memory_poll = 10'000;
  limits_.over_memory = [] { return true; };
  EXPECT_EQ(Run({"trap '' TERM; sleep 100"}), "started 1; end 0 137 9; memory -1 137 9");
}

TEST_F(SupervisorTest, DoesNotWaitForGrandchildrenThatKeepTheOutputOpen) {
  EXPECT_EQ(Run({"sleep 1000 & echo $! > $DIR/pid; echo done"}), "started 1; end 0 0 0; none -1 0 0");
  EXPECT_TRUE(IsGone("pid"));
  EXPECT_EQ(ReadAll(LogPath(0)), "done\n");
}

TEST_F(SupervisorTest, KeepsWhatAGrandchildWritesShortlyAfterTheEnd) {
  times_.linger = 20'000'000;
  EXPECT_EQ(Run({"(sleep 0.1; echo late) & exit 0"}), "started 1; end 0 0 0; none -1 0 0");
  EXPECT_EQ(ReadAll(LogPath(0)), "late\n");
}

TEST_F(SupervisorTest, KillsDaemonsThatTheMembersLeaveBehind) {
  const std::string daemon =
      "(setsid sh -c 'trap \"\" TERM; echo $$ > $DIR/pid; touch $DIR/up; while :; do sleep 0.05; done'"
      " </dev/null >/dev/null 2>&1 &) ; while ! [ -e $DIR/up ]; do sleep 0.01; done";
  EXPECT_EQ(Run({daemon}), "started 1; end 0 0 0; none -1 0 0");
  EXPECT_TRUE(IsGone("pid"));
}

TEST_F(SupervisorTest, ReportsACommandThatDoesNotExistAndStopsTheOthers) {
  EXPECT_EQ(Run({"exec sleep 100", "no such"}), "end 1 127 0; end 0 143 15; failed 1 127 0");
}

TEST_F(SupervisorTest, RunsOneGroupAfterTheOther) {
  const std::string story = InChild([&] {
    return StrCat(RunHere({"exit 1"}), " | ", RunHere({"true", "true"}));
  });
  EXPECT_TRUE(story.starts_with("started 1; end 0 1 0; failed 0 1 0 | started 2; end ")) << story;
  EXPECT_TRUE(story.ends_with("none -1 0 0")) << story;
}

}  // namespace
}  // namespace overcap
