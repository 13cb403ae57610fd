// SPDX-License-Identifier: Apache-2.0
#include "launch/local/stacks.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/proc_table.h"
#include "sys/process.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr size_t kMaxText = 64 << 10;
constexpr size_t kMaxThreads = 64;
constexpr size_t kMaxChildren = 16;
constexpr int64_t kKillWaitUs = 1'000'000;

std::string ReadSmall(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(16 << 10, '\0');
  const ssize_t size = fd ? read(fd.Get(), text.data(), text.size()) : 0;
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

std::string Word(const std::string& status, std::string_view key) {
  const size_t at = status.find(key);
  if (at == std::string::npos) return {};
  const size_t begin = at + key.size();
  return std::string(Trim(std::string_view(status).substr(begin, status.find('\n', begin) - begin)));
}

std::string CommandLine(pid_t pid) {
  std::string text = ReadSmall(StrCat("/proc/", pid, "/cmdline")).substr(0, 300);
  std::replace(text.begin(), text.end(), '\0', ' ');
  return std::string(Trim(text));
}

std::vector<std::string> ThreadsOf(pid_t pid) {
  std::vector<std::string> names;
  DIR* folder = opendir(StrCat("/proc/", pid, "/task").c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(folder);
  return names;
}

// "0x7f.. wchan": only root may read a kernel stack, and some kernels hide the rest, too.
std::string KernelPlace(pid_t pid, const std::string& thread) {
  const std::string folder = StrCat("/proc/", pid, "/task/", thread, "/");
  const std::string status = ReadSmall(folder + "status");
  const std::string wchan = ReadSmall(folder + "wchan"), call = ReadSmall(folder + "syscall");
  std::string text =
      StrCat("  thread ", thread, " '", Word(status, "Name:"), "' state ", Word(status, "State:"));
  if (!wchan.empty() && wchan != "0") text += StrCat(", waits in ", Trim(wchan));
  if (!call.empty()) text += StrCat(", system call ", Trim(call));
  text += "\n";
  for (const std::string& line : Split(ReadSmall(folder + "stack"), '\n')) {
    if (!line.empty()) text += StrCat("    ", line, "\n");
  }
  return text;
}

std::string KernelView(pid_t pid) {
  std::string text = StrCat("process ", pid, ": ", CommandLine(pid), "\n");
  const std::vector<std::string> threads = ThreadsOf(pid);
  if (threads.empty()) return StrCat("process ", pid, " has ended\n");
  for (size_t i = 0; i < std::min(threads.size(), kMaxThreads); ++i) text += KernelPlace(pid, threads[i]);
  if (threads.size() > kMaxThreads) text += StrCat("  and ", threads.size() - kMaxThreads, " more threads\n");
  return text;
}

std::string KernelViewOfFamily(pid_t pid) {
  std::string text = KernelView(pid);
  std::vector<pid_t> children = LikelyChildrenOf(pid);
  if (children.size() > kMaxChildren) children.resize(kMaxChildren);
  for (const pid_t child : children) text += KernelView(child);
  return text;
}

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

bool IsPython(pid_t pid) {
  char path[4096];
  const ssize_t size = readlink(StrCat("/proc/", pid, "/exe").c_str(), path, sizeof path);
  return size > 0 && BaseName({path, static_cast<size_t>(size)}).starts_with("python");
}

// The rank itself, or a Python that its script or wrapper has started.
pid_t PythonOf(pid_t pid) {
  if (IsPython(pid)) return pid;
  for (const pid_t child : LikelyChildrenOf(pid)) {
    if (IsPython(child)) return child;
  }
  return 0;
}

// One py-spy at work.
struct Dump {
  Spawned process;
  Fd output;
  std::string text;
};

void StartDump(pid_t python, Dump* dump) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  Fd read_end(ends[0]), write_end(ends[1]);
  SpawnRequest request;
  request.argv = {"py-spy", "dump", "--pid", std::to_string(python)};
  request.env = Variables::OfThisProcess().entries();
  request.stdout_fd = request.stderr_fd = write_end.Get();
  Result<Spawned> spawned = Spawn(request);
  if (!spawned) return;  // there is none: the kernel's view has to do
  dump->process = std::move(*spawned);
  dump->output = std::move(read_end);
}

void ReadDump(Dump* dump) {
  char chunk[4096];
  for (;;) {
    const ssize_t n = read(dump->output.Get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return dump->output.Reset();
    if (dump->text.size() < kMaxText) dump->text.append(chunk, static_cast<size_t>(n));
  }
}

bool ReadSome(std::vector<Dump>* dumps, int64_t wait_us) {
  std::vector<pollfd> fds;
  for (const Dump& dump : *dumps) {
    if (dump.output) fds.push_back({dump.output.Get(), POLLIN, 0});
  }
  if (fds.empty() || wait_us <= 0) return false;
  if (poll(fds.data(), fds.size(), static_cast<int>(wait_us / 1000) + 1) < 0 && errno != EINTR) return false;
  for (Dump& dump : *dumps) {
    if (dump.output) ReadDump(&dump);
  }
  return true;
}

// True when it ended well. One that does not end is killed; one that cannot be is left to whoever reaps
// later.
bool EndDump(Dump* dump, const Clock& clock) {
  int status = 0;
  if (dump->output) kill(-dump->process.pid, SIGKILL);
  const int64_t until = clock.MonotonicUs() + kKillWaitUs;
  for (pid_t done = 0; clock.MonotonicUs() < until;) {
    done = waitpid(dump->process.pid, &status, WNOHANG);
    if (done == dump->process.pid) return !dump->output && status == 0 && !dump->text.empty();
    if (done < 0 && errno != EINTR) return false;
    usleep(1000);
  }
  kill(-dump->process.pid, SIGKILL);
  return false;
}

std::string Bounded(std::string text) {
  if (text.size() > kMaxText) text = text.substr(0, kMaxText) + "\n(cut off)";
  std::string out;
  for (const std::string& line : Split(text, '\n')) out += StrCat(out.empty() ? "" : "\n", ToUtf8(line));
  return out;
}

}  // namespace

std::string CollectStack(pid_t pid, int64_t deadline_us) {
  return CollectStacks(std::vector<pid_t>{pid}, deadline_us)[0];
}

std::vector<std::string> CollectStacks(const std::vector<pid_t>& pids, int64_t deadline_us) {
  const PosixClock clock;
  std::vector<Dump> dumps(pids.size());
  for (size_t i = 0; i < pids.size(); ++i) {
    if (const pid_t python = PythonOf(pids[i]); python > 0) StartDump(python, &dumps[i]);
  }
  std::vector<std::string> texts;  // while they work
  for (const pid_t pid : pids) texts.push_back(KernelViewOfFamily(pid));
  while (ReadSome(&dumps, deadline_us - clock.MonotonicUs())) continue;
  for (size_t i = 0; i < pids.size(); ++i) {
    if (dumps[i].process.pid > 0 && EndDump(&dumps[i], clock)) texts[i] = dumps[i].text;
    texts[i] = Bounded(std::move(texts[i]));
  }
  return texts;
}

}  // namespace overcap
