// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/engine_start.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/text.h"
#include "net/unix_socket.h"
#include "sys/posix_files.h"
#include "sys/process.h"
#include "sys/user.h"

extern char** environ;

namespace overcap {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPoll{2};
constexpr milliseconds kTryAgain{200};
constexpr std::chrono::seconds kStartTimeout{30};

// The engine belongs to no job and to no terminal, whoever was the first to need it.
std::vector<std::string> EngineEnvironment() {
  std::vector<std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool ours = text.starts_with("OVERCAP_");
    const bool where = text.starts_with("OVERCAP_HOME=") || text.starts_with("OVERCAP_CONFIG=") ||
                       text.starts_with("OVERCAP_SSH=") || text.starts_with("OVERCAP_HOST=");
    if (!ours || where) env.emplace_back(text);
  }
  return env;
}

Result<Fd> OpenLog(const std::string& path) {
  Fd log(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return Fail(ErrnoError(errno, StrCat("cannot open '", path, "'")));
  return log;
}

int64_t SizeOf(const Fd& file) {
  struct stat info {};
  return fstat(file.Get(), &info) == 0 ? info.st_size : 0;
}

// What this start has written last; the program prints its errors as "overcap: ..." and "hint: ...".
struct LastWords {
  std::string message;
  std::string hint;
};

LastWords ReadLastWords(const std::string& path, int64_t from) {
  constexpr std::string_view kError = "overcap: ", kHint = "hint: ";
  LastWords words;
  const auto text = PosixFiles().ReadRange(path, from, 1 << 16);
  for (const std::string& line : text ? Split(*text, '\n') : std::vector<std::string>()) {
    if (line.starts_with(kError)) words = {line.substr(kError.size()), ""};
    if (line.starts_with(kHint)) words.hint = line.substr(kHint.size());
  }
  return words;
}

// `exit_status`: of the engine, which maps an ErrorCode as every command does; -1: it still runs.
tl::unexpected<Error> DidNotStart(const std::string& log, int64_t from, std::string_view what,
                                  int exit_status) {
  const LastWords words = ReadLastWords(log, from);
  const bool corrupt = exit_status == ExitStatus(ErrorCode::kCorrupt);
  return Fail(corrupt ? ErrorCode::kCorrupt : ErrorCode::kUnavailable,
              StrCat("the engine ", what, words.message.empty() ? "" : ": ", words.message),
              words.hint.empty() ? StrCat("its log is ", ShellQuote(log)) : words.hint);
}

}  // namespace

Result<Fd> StartEngine(const std::string& binary, const std::string& root) {
  if (auto made = PosixFiles().MakeFolders(root); !made) {
    made.error().hint = kRootHint;
    return Fail(std::move(made).error());
  }
  const std::string log_path = root + "/daemon.log";
  OC_TRY(log, OpenLog(log_path));
  const int64_t from = SizeOf(log);
  SpawnRequest request;
  request.argv = {binary, "daemon", "--root", root};
  request.program = binary;
  request.env = EngineEnvironment();
  request.cwd = "/";
  request.stdout_fd = request.stderr_fd = log.Get();
  request.group = ProcessGroup::kSession;
  const auto deadline = steady_clock::now() + kStartTimeout;
  auto spawn_at = steady_clock::now();
  pid_t engine = 0;
  while (steady_clock::now() < deadline) {
    if (engine == 0 && steady_clock::now() >= spawn_at) {
      OC_TRY(spawned, Spawn(request));
      engine = spawned.pid;
    }
    auto connected = ConnectUnix(root + "/daemon.sock", milliseconds(1000));
    if (connected) return connected;
    int status = 0;
    if (engine != 0 && waitpid(engine, &status, WNOHANG) == engine) {
      const int exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
      if (exit_status != 0) return DidNotStart(log_path, from, "did not start", exit_status);
      // Another engine holds the lock: its socket will appear, unless that engine is about to end. Then, and
      // when our engine was killed, we start one again.
      engine = 0;
      spawn_at = steady_clock::now() + kTryAgain;
    }
    std::this_thread::sleep_for(kPoll);
  }
  return DidNotStart(log_path, from, "did not listen within 30 seconds", -1);
}

}  // namespace overcap
