// SPDX-License-Identifier: Apache-2.0
// The mirror between real processes and users, with a program that counts how often it is called.
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "clusters/slurm/mirror.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr auto kPatience = std::chrono::seconds(60);

// A process that has ended but that nobody has waited for does not.
bool Runs(pid_t pid) {
  std::ifstream stat(StrCat("/proc/", pid, "/stat"));
  std::string number, name, state;
  return static_cast<bool>(stat >> number >> name >> state) && state != "Z" && state != "X";
}

class MirrorProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(chmod(folder_.Path().c_str(), 0755), 0);
    std::ofstream(folder_ / "calls") << "";
    ASSERT_EQ(chmod((folder_ / "calls").c_str(), 0666), 0);
    options_ = {"sky", "", {}, {folder_ / "own"}};
    options_.min_interval_us = 400'000;
    Program("echo row");
  }
  void TearDown() override {
    for (const pid_t pid : children_) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
  }

  void Program(const std::string& script) { script_ = StrCat("echo $$ >>", folder_ / "calls", "; ", script); }
  int Calls() {
    std::ifstream calls(folder_ / "calls");
    int count = 0;
    for (std::string line; std::getline(calls, line);) ++count;
    return count;
  }
  pid_t LastCaller() {
    std::ifstream calls(folder_ / "calls");
    pid_t pid = 0;
    while (calls >> pid) continue;
    return pid;
  }

  Mirror Make(MirrorOptions options) {
    const auto run = [](const std::vector<std::string>& argv, std::chrono::milliseconds timeout) {
      SpawnRequest request;
      request.argv = argv, request.env = {"PATH=/usr/bin:/bin"}, request.cwd = "/";
      return CallTool(std::move(request), timeout, 1 << 20);
    };
    const auto argv = [script = script_](std::string_view, int64_t) {
      return std::vector<std::string>{"/bin/sh", "-c", script};
    };
    return Mirror({&clock_, &random_, run, [](int64_t us) { usleep(static_cast<useconds_t>(us)); }},
                  std::move(options), {{MirrorKind::kQueue, {argv, {}}}});
  }

  // Reads until `end_us`; false when anything but the one row is ever told.
  bool Watch(const MirrorOptions& options, int64_t end_us) {
    Mirror mirror = Make(options);
    do {
      const auto read = mirror.Read(MirrorKind::kQueue, 0);
      if (!read || read->error || *read->text != "row\n" || !mirror.troubles().empty()) return false;
      usleep(10'000);
    } while (clock_.MonotonicUs() < end_us);
    return true;
  }
  pid_t Start(const std::function<bool()>& body) {
    const pid_t pid = fork();
    if (pid == 0) _exit(body() ? 0 : 1);
    children_.push_back(pid);
    return pid;
  }
  // The exit status of a child; 128 + signal.
  int End(pid_t pid) {
    int status = 0;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (waitpid(pid, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) return -1;
      usleep(2'000);
    }
    std::erase(children_, pid);
    return ProcessEndOf(status).exit_status;
  }
  bool WaitUntil(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      usleep(2'000);
    }
    return true;
  }

  TempFolder folder_;
  PosixClock clock_;
  KernelRandom random_;
  MirrorOptions options_;
  std::string script_;
  std::vector<pid_t> children_;
};

TEST_F(MirrorProcesses, FiftyThatAskAtOnceMakeOneCall) {
  options_.min_interval_us = 60 * kSecond;
  Program("sleep 0.2; echo row");
  std::vector<pid_t> readers;
  for (int k = 0; k < 50; ++k) readers.push_back(Start([&] { return Watch(options_, 0); }));
  for (const pid_t reader : readers) EXPECT_EQ(End(reader), 0);
  EXPECT_EQ(Calls(), 1);
}

TEST_F(MirrorProcesses, FiftyThatWatchMakeOneCallForEachInterval) {
  const int64_t began = clock_.MonotonicUs();
  std::vector<pid_t> readers;
  for (int k = 0; k < 50; ++k) {
    readers.push_back(Start([&] { return Watch(options_, began + 2 * kSecond); }));
  }
  for (const pid_t reader : readers) EXPECT_EQ(End(reader), 0);
  const int64_t intervals = (clock_.MonotonicUs() - began) / options_.min_interval_us;
  EXPECT_GE(Calls(), 2);
  EXPECT_LE(Calls(), intervals + 1);
}

TEST_F(MirrorProcesses, AFailureOfOneIsTheFailureOfAllThatWait) {
  options_.min_interval_us = 60 * kSecond;
  Program("sleep 0.1; echo down >&2; exit 1");
  std::vector<pid_t> readers;
  for (int k = 0; k < 50; ++k) {
    readers.push_back(Start([&] {
      const auto read = Make(options_).Read(MirrorKind::kQueue, 0);
      return !read && read.error().message == "'/bin/sh' failed with exit status 1: down";
    }));
  }
  for (const pid_t reader : readers) EXPECT_EQ(End(reader), 0);
  EXPECT_EQ(Calls(), 1);
}

TEST_F(MirrorProcesses, WhenTheOneThatAsksIsKilledTheNextAsksAndNothingIsLeftOfItsCall) {
  options_.call_timeout_us = 120 * kSecond;
  Program(StrCat("test -e ", folder_ / "second", " || { : > ", folder_ / "asleep",
                 "; exec sleep 1000; }; echo row"));
  const pid_t first = Start([&] { return Watch(options_, 0); });
  ASSERT_TRUE(WaitUntil([&] { return access((folder_ / "asleep").c_str(), F_OK) == 0; }));
  const pid_t caller = LastCaller();
  std::ofstream(folder_ / "second") << "";
  std::vector<pid_t> waiting;
  for (int k = 0; k < 5; ++k) waiting.push_back(Start([&] { return Watch(options_, 0); }));
  kill(first, SIGKILL);
  EXPECT_EQ(End(first), 128 + SIGKILL);
  for (const pid_t reader : waiting) EXPECT_EQ(End(reader), 0);
  EXPECT_EQ(Calls(), 2);
  EXPECT_TRUE(WaitUntil([&] { return !Runs(caller); }));
}

TEST_F(MirrorProcesses, WritersThatAreKilledAtAnyTimeLeaveNothingThatReadersMistake) {
  options_.min_interval_us = 0;
  Program("echo row");
  const int64_t end = clock_.MonotonicUs() + kSecond;
  const pid_t reader = Start([&] { return Watch(options_, end); });
  SeededRandom chance(3);
  while (clock_.MonotonicUs() < end) {
    const pid_t writer = Start([&] { return Watch(options_, INT64_MAX); });
    usleep(static_cast<useconds_t>(chance.Below(30'000)));
    kill(writer, SIGKILL);
    EXPECT_EQ(End(writer), 128 + SIGKILL);
  }
  EXPECT_EQ(End(reader), 0);
}

TEST_F(MirrorProcesses, OneThatIsStoppedWhileItAsksKeepsNobodyWaitingForEver) {
  options_.call_timeout_us = 200'000;
  Program(StrCat("test -e ", folder_ / "second", " || { : > ", folder_ / "asleep",
                 "; exec sleep 1000; }; echo row"));
  const pid_t first = Start([&] { return Watch(options_, 0); });
  ASSERT_TRUE(WaitUntil([&] { return access((folder_ / "asleep").c_str(), F_OK) == 0; }));
  kill(first, SIGSTOP);
  std::ofstream(folder_ / "second") << "";
  EXPECT_EQ(End(Start([&] { return Watch(options_, 0); })), 0);
  EXPECT_EQ(Calls(), 2);
}

TEST_F(MirrorProcesses, UsersOfOneGroupMakeOneCallTogether) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: other users: only root can become them";
  options_.shared_folder = folder_ / "shared";
  options_.min_interval_us = 60 * kSecond;
  ASSERT_EQ(mkdir(options_.shared_folder.c_str(), 0700), 0);
  ASSERT_EQ(chown(options_.shared_folder.c_str(), 0, 100), 0);
  ASSERT_EQ(chmod(options_.shared_folder.c_str(), 02770), 0);
  Program("sleep 0.2; echo row");
  std::vector<pid_t> readers;
  for (uid_t user = 65500; user < 65520; ++user) {
    readers.push_back(Start([&, user] {
      options_.own_folders = {};
      return setgroups(0, nullptr) == 0 && setgid(100) == 0 && setuid(user) == 0 && Watch(options_, 0);
    }));
  }
  for (const pid_t reader : readers) EXPECT_EQ(End(reader), 0);
  EXPECT_EQ(Calls(), 1);
}

}  // namespace
}  // namespace overcap
