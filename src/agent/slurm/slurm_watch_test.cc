// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_watch.h"

#include <csignal>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/testing/in_child.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;

// A supervisor takes the signals of its process for good: each test has a process of its own. Gives what
// `body` did.
std::string Apart(const std::function<int()>& body) {
  return InChild([&] { return std::to_string(body()); });
}

class SlurmWatchTest : public testing::Test {
 protected:
  SlurmWatchTest() {
    start_.job_id = 40;
    auto made = ReportFile::Make(folder_.Path() + "/report");
    EXPECT_TRUE(made);
    report_.emplace(*std::move(made));
  }
  SlurmWatch& Watch(LaunchCommand listener = {}) {
    watch_.emplace(SlurmWatchInputs{
        spec_, start_, folder_.Path(), 5 * kSecond, {"PATH=" + folder_.Path()}, clock_, std::move(listener)});
    return *watch_;
  }
  // Lets the watch do its work until `done`; false after ten real seconds.
  bool Until(const std::function<bool()>& done) {
    for (int i = 0; i < 2000 && !done(); ++i) poll(nullptr, 0, 5);
    return done();
  }
  FakeClock clock_;
  JobSpec spec_;
  SlurmStart start_;
  TempFolder folder_;
  std::optional<ReportFile> report_;
  std::optional<SlurmWatch> watch_;
};

TEST_F(SlurmWatchTest, ShowsThatItLivesAndSeesWhoWantsItToEnd) {
  EXPECT_EQ(Apart([&] {
              auto supervisor = Supervisor::Make(clock_, {});
              SlurmWatch& watch = Watch();
              watch.Begin(supervisor->get(), false, &*report_);
              const timespec past[2] = {{5, 0}, {5, 0}};
              utimensat(AT_FDCWD, (folder_.Path() + "/report").c_str(), past, 0);
              std::vector<pollfd> fds;
              if (watch.Prepare(&fds) != clock_.MonotonicUs() + 30 * kSecond || !fds.empty()) return 1;
              clock_.Advance(29 * kSecond);
              if (watch.Act({})) return 2;
              struct stat info;
              stat((folder_.Path() + "/report").c_str(), &info);
              if (info.st_mtime != 5) return 3;
              (void)PosixFiles().WriteAtomic(folder_.Path() + "/cancel.json", "{\"reason\":\"by ada\"}",
                                             false);
              clock_.Advance(kSecond);
              if (!watch.Act({})) return 4;
              stat((folder_.Path() + "/report").c_str(), &info);
              if (info.st_mtime == 5) return 5;
              const StopEvidence seen = watch.Collect({JobState::kCancelled, 143, 15, -1, ""});
              return seen.cancel == "by ada" && !seen.facts ? 0 : 6;
            }),
            "0");
}

TEST_F(SlurmWatchTest, SeesThatSlurmHasBegunALaterStart) {
  EXPECT_EQ(Apart([&] {
              auto supervisor = Supervisor::Make(clock_, {});
              SlurmWatch& watch = Watch();
              const std::string next = folder_.Path() + "/attempt-2/agent-0.claim";
              watch.Begin(supervisor->get(), false, &*report_, next);
              clock_.Advance(30 * kSecond);
              if (watch.Act({})) return 1;
              (void)PosixFiles().MakeFolders(folder_.Path() + "/attempt-2");
              (void)PosixFiles().WriteAtomic(next, "{}", false);
              clock_.Advance(30 * kSecond);
              if (!watch.Act({})) return 2;
              return watch.Collect({JobState::kCancelled, 143, 15, -1, ""}).replaced ? 0 : 3;
            }),
            "0");
}

TEST_F(SlurmWatchTest, HearsWhatOnlyStepsAreTold) {
  EXPECT_EQ(Apart([&] {
              auto supervisor = Supervisor::Make(clock_, {});
              LaunchCommand listener;
              listener.argv = {"/bin/sh", "-c", "echo TERM; read end; exit 0"};
              SlurmWatch& watch = Watch(listener);
              watch.Begin(supervisor->get(), false, &*report_);
              if (watch.Act({})) return 1;
              clock_.Advance(2 * kSecond);
              if (watch.Act({})) return 2;
              return Until([&] { return watch.Act({}); }) && watch.told() ? 0 : 3;
            }),
            "0");
}

// A script that saves at the warning, requeues its job and ends well, all within a second.
TEST_F(SlurmWatchTest, WhatSlurmSaidAtTheWarningDoesNotCountAtTheEndOfAScript) {
  EXPECT_EQ(Apart([&] {
              const std::string tool = folder_.Path() + "/squeue", asked = folder_.Path() + "/asked";
              const std::string text =
                  StrCat("#!/bin/sh\nPATH=/bin:/usr/bin\necho x >>", asked, "\necho \"RUNNING|$(($(wc -l <",
                         asked, ") - 1))|5|1:00|N/A|\"\n");
              (void)PosixFiles().WriteAtomic(tool, text, false);
              chmod(tool.c_str(), 0700);
              spec_.batch = spec_.requeue = true;
              auto supervisor = Supervisor::Make(clock_, {});
              SlurmWatch& watch = Watch();
              watch.Begin(supervisor->get(), false, &*report_);
              watch.OnSignal(SIGUSR1);
              const bool answered = Until([&] {
                (void)watch.Act({});
                return PosixFiles().Exists(asked);
              });
              if (!answered) return 1;
              const StopEvidence seen = watch.Collect({JobState::kSucceeded, 0, 0, -1, ""});
              if (!seen.facts || seen.facts->restarts != 1) return 2;
              return JudgeEnd(spec_, seen).ending.state == JobState::kPreempted ? 0 : 3;
            }),
            "0");
}

TEST_F(SlurmWatchTest, WithoutSlurmsProgramsNothingIsKnownAndNothingHangs) {
  EXPECT_EQ(Apart([&] {
              auto supervisor = Supervisor::Make(clock_, {});
              SlurmWatch& watch = Watch();
              watch.Begin(supervisor->get(), true, &*report_);
              watch.OnSignal(SIGUSR1);
              watch.OnSignal(SIGTERM);
              const StopEvidence seen = watch.Collect({JobState::kCancelled, 143, 15, -1, ""});
              return seen.told && seen.warned && !seen.facts && !seen.cancel ? 0 : 1;
            }),
            "0");
}

TEST_F(SlurmWatchTest, AnAnswerThatIsNotCompleteInTimeIsNone) {
  EXPECT_EQ(Apart([&] {
              const std::vector<std::string> slow = {"/bin/sh", "-c", "echo RUNNING; sleep 100"};
              auto tool = SideTool::Start(slow, {}, clock_.MonotonicUs() + kSecond);
              if (!tool || !Until([&] { return !tool->Step(clock_.MonotonicUs()) && !tool->text().empty(); }))
                return 1;
              clock_.Advance(kSecond);
              return tool->Step(clock_.MonotonicUs()) && tool->text().empty() ? 0 : 2;
            }),
            "0");
}

}  // namespace
}  // namespace overcap
