// SPDX-License-Identifier: Apache-2.0
#include "sys/process.h"

#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <poll.h>
#include <signal.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/testing/temp_folder.h"
#include "sys/user.h"

namespace overcap {
namespace {

const std::vector<std::string> kEnv = {"PATH=/usr/bin:/bin"};

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

void WriteFile(const std::string& path, const std::string& text, int mode) {
  std::ofstream(path, std::ios::binary) << text;
  chmod(path.c_str(), mode);
}

struct Ran {
  ProcessEnd end;
  std::string out;
};

// Runs it to its end with stdout in a file.
Result<Ran> RunIt(SpawnRequest request, const TempFolder& folder) {
  const std::string path = folder / "out";
  const Fd out(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  request.stdout_fd = out.Get();
  if (request.env.empty()) request.env = kEnv;
  OC_TRY(spawned, Spawn(request));
  int status = 0;
  waitpid(spawned.pid, &status, 0);
  return Ran{ProcessEndOf(status), ReadAll(path)};
}

SpawnRequest Request(std::vector<std::string> argv) {
  SpawnRequest request;
  request.argv = std::move(argv);
  return request;
}

TEST(Spawn, SetsTheUmaskAndTheLimitOfOpenFilesOfTheProgramOnly) {
  TempFolder folder;
  const int before = OwnUmask();
  SpawnRequest request = Request({"/bin/sh", "-c", "umask; ulimit -Sn"});
  request.umask = 027;
  request.nofile_soft = 77;
  const auto ran = RunIt(request, folder);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->out, "0027\n77\n");
  EXPECT_EQ(OwnUmask(), before);
  EXPECT_NE(OwnFileLimit(), 77);
}

TEST(Spawn, NeverRaisesTheSoftLimitOfOpenFilesOverTheHardOne) {
  TempFolder folder;
  SpawnRequest request = Request({"/bin/sh", "-c", "[ $(ulimit -Sn) = $(ulimit -Hn) ] && echo same"});
  request.nofile_soft = std::numeric_limits<int64_t>::max();
  const auto ran = RunIt(request, folder);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->out, "same\n");
}

TEST(Spawn, PassesTheArgumentsByteForByte) {
  TempFolder folder;
  const std::vector<std::string> words = {"a  b",        "it's \"x\"", "&&", "$HOME `id`",
                                          "line\nbreak", "ü\xff",      "",   "*"};
  SpawnRequest request = Request({"printf", "<%s>"});
  request.argv.insert(request.argv.end(), words.begin(), words.end());
  const auto ran = RunIt(request, folder);
  ASSERT_TRUE(ran) << ran.error().message;
  std::string expected;
  for (const std::string& word : words) expected += StrCat("<", word, ">");
  EXPECT_EQ(ran->out, expected);
}

TEST(Spawn, GivesExactlyTheEnvironmentAndTheFolder) {
  TempFolder folder;
  SpawnRequest request = Request({"sh", "-c", "env | grep -c . ; echo $X; pwd"});
  request.env = {"PATH=/usr/bin:/bin", "X=1 2"};
  request.cwd = "/usr/bin";
  const auto ran = RunIt(request, folder);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(ran->out.ends_with("\n1 2\n/usr/bin\n")) << ran->out;
}

TEST(Spawn, LeaksNoDescriptor) {
  TempFolder folder;
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int leaky = fcntl(null.Get(), F_DUPFD, 77);  // not close-on-exec
  const auto ran = RunIt(Request({"/bin/sh", "-c", "cd /proc/$$/fd && echo *"}), folder);
  close(leaky);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->out.substr(0, 5), "0 1 2");
  EXPECT_EQ(ran->out.find(std::to_string(leaky)), std::string::npos) << ran->out;
}

TEST(Spawn, SaysThatACommandDoesNotExist) {
  TempFolder folder;
  const auto ran = RunIt(Request({"no-such-program"}), folder);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ran.error().message, "command 'no-such-program' does not exist");
  SpawnRequest known = Request({"x"});
  known.program = "/no/such/program";
  EXPECT_EQ(Spawn(known).error().message, "command '/no/such/program' does not exist");
}

TEST(Spawn, SaysThatACommandMayNotBeExecuted) {
  TempFolder folder;
  WriteFile(folder / "data", "x", 0600);
  const auto ran = RunIt(Request({folder / "data"}), folder);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kDenied);
  WriteFile(folder / "script", "echo hi\n", 0700);
  const auto script = RunIt(Request({folder / "script"}), folder);
  ASSERT_FALSE(script);
  EXPECT_NE(script.error().message.find("has no '#!' line"), std::string::npos) << script.error().message;
  WriteFile(folder / "lost", "#!/no/such/interpreter\n", 0700);
  const auto lost = RunIt(Request({folder / "lost"}), folder);
  ASSERT_FALSE(lost);
  EXPECT_NE(lost.error().message.find("interpreter that does not exist"), std::string::npos);
}

TEST(Spawn, SaysThatTheFolderIsMissing) {
  TempFolder folder;
  SpawnRequest request = Request({"/bin/true"});
  request.cwd = folder / "none";
  const auto ran = RunIt(request, folder);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kNotFound);
  EXPECT_NE(ran.error().message.find("cannot enter folder '"), std::string::npos);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process was left behind";
}

TEST(Spawn, ReportsAnEndBySignal) {
  TempFolder folder;
  const auto ran = RunIt(Request({"sh", "-c", "kill -SEGV $$"}), folder);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->end, (ProcessEnd{139, 11}));
}

TEST(Spawn, LeadsItsGroupOrSession) {
  TempFolder folder;
  for (const auto& [group, field] :
       {std::pair{ProcessGroup::kGroup, 3}, std::pair{ProcessGroup::kSession, 4}}) {
    SpawnRequest request = Request({"sh", "-c", "cat /proc/$$/stat"});
    request.group = group;
    const auto ran = RunIt(request, folder);
    ASSERT_TRUE(ran) << ran.error().message;
    const auto words = Split(ran->out, ' ');
    EXPECT_EQ(words[field + 1], words[0]) << ran->out;
  }
}

TEST(Spawn, SetsIgnoredAndBlockedSignalsAsAsked) {
  TempFolder folder;
  signal(SIGHUP, SIG_IGN);
  SpawnRequest request = Request({"grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"});
  request.blocked_signals = {SIGTERM};
  const auto ran = RunIt(request, folder);
  signal(SIGHUP, SIG_DFL);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->out, "SigBlk:\t0000000000004000\nSigIgn:\t0000000000000000\n");
}

TEST(Spawn, PinsToProcessors) {
  TempFolder folder;
  SpawnRequest request = Request({"grep", "Cpus_allowed_list", "/proc/self/status"});
  request.cpus = {0};
  const auto ran = RunIt(request, folder);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->out, "Cpus_allowed_list:\t0\n");
}

TEST(Spawn, GivesAPidfdThatTellsOfTheEnd) {
  SpawnRequest request = Request({"/bin/true"});
  request.want_pidfd = true;
  auto spawned = Spawn(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  pollfd fd{spawned->pidfd.Get(), POLLIN, 0};
  EXPECT_EQ(poll(&fd, 1, 10'000), 1);
  waitpid(spawned->pid, nullptr, 0);
}

TEST(ResolveProgram, LooksInThePathRelativeToTheFolder) {
  TempFolder folder;
  mkdir((folder / "bin").c_str(), 0700);
  WriteFile(folder / "bin/tool", "#!/bin/sh\n", 0700);
  WriteFile(folder / "bin/data", "x", 0600);
  const std::string cwd = folder.Path();
  EXPECT_EQ(ResolveProgram("sh", "/nowhere:/bin", cwd).value(), "/bin/sh");
  EXPECT_EQ(ResolveProgram("./bin/tool", "", folder / "bin/..").value(), folder / "bin/.././bin/tool");
  EXPECT_TRUE(ResolveProgram("tool", "/bin:bin", cwd));
  EXPECT_EQ(ResolveProgram("tool", "/bin", cwd).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ResolveProgram("data", "bin", cwd).error().code, ErrorCode::kDenied);
  EXPECT_EQ(ResolveProgram("bin/", "", cwd).error().code, ErrorCode::kDenied);
  EXPECT_EQ(ResolveProgram("", "/bin", cwd).error().code, ErrorCode::kUsage);
}

TEST(EndedWithin, TakesTheEndOfAChild) {
  const auto child = Spawn(Request({"/bin/sh", "-c", "exit 0"}));
  ASSERT_TRUE(child);
  EXPECT_TRUE(EndedWithin(child->pid, 60'000'000));
  EXPECT_EQ(waitpid(child->pid, nullptr, WNOHANG), -1);
  EXPECT_TRUE(EndedWithin(child->pid, 0)) << "there is none";
}

TEST(EndedWithin, KillsAChildThatDoesNotEnd) {
  const auto child = Spawn(Request({"/bin/sh", "-c", "kill -STOP $$; exec sleep 1000"}));
  ASSERT_TRUE(child);
  EXPECT_FALSE(EndedWithin(child->pid, 10'000));
  EXPECT_EQ(kill(child->pid, 0), -1);
}

}  // namespace
}  // namespace overcap
