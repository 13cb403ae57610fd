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

extern char** environ;

namespace overcap {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPoll{2};
constexpr std::chrono::seconds kStartTimeout{10};

// The engine belongs to no job and to no terminal, whoever was the first to need it.
std::vector<std::string> EngineEnvironment() {
  std::vector<std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("OVERCAP_JOB") && !text.starts_with("OVERCAP_ATTEMPT")) env.emplace_back(text);
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

// What this start has written last; the program prints its errors as "overcap: ...".
std::string LastWords(const std::string& path, int64_t from) {
  const auto text = PosixFiles().ReadRange(path, from, 1 << 16);
  if (!text) return {};
  std::string last;
  for (const std::string& line : Split(*text, '\n')) {
    if (line.starts_with("overcap: ") || (last.empty() && !line.empty())) last = line;
  }
  constexpr std::string_view kPrefix = "overcap: ";
  return last.starts_with(kPrefix) ? last.substr(kPrefix.size()) : last;
}

tl::unexpected<Error> DidNotStart(const std::string& log, int64_t from, std::string_view what) {
  const std::string words = LastWords(log, from);
  return Fail(ErrorCode::kUnavailable, StrCat("the engine ", what, words.empty() ? "" : ": ", words),
              StrCat("its log is ", ShellQuote(log)));
}

}  // namespace

Result<Fd> StartEngine(const std::string& binary, const std::string& root) {
  OC_TRY_VOID(PosixFiles().MakeFolders(root));
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
  OC_TRY(engine, Spawn(request));
  const auto deadline = steady_clock::now() + kStartTimeout;
  bool running = true;
  while (steady_clock::now() < deadline) {
    auto connected = ConnectUnix(root + "/daemon.sock", milliseconds(1000));
    if (connected) return connected;
    int status = 0;
    if (running && waitpid(engine.pid, &status, WNOHANG) == engine.pid) {
      if (status != 0) return DidNotStart(log_path, from, "did not start");
      running = false;  // another one holds the lock; its socket will come
    }
    std::this_thread::sleep_for(kPoll);
  }
  return DidNotStart(log_path, from, "did not listen within 10 seconds");
}

}  // namespace overcap
