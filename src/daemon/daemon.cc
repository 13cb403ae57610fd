// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <malloc.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "daemon/api.h"
#include "daemon/engine.h"
#include "daemon/foreign_folders.h"
#include "daemon/posix_agents.h"
#include "daemon/server.h"
#include "net/unix_socket.h"
#include "sys/clock.h"
#include "sys/posix_files.h"
#include "sys/spread_folders.h"

namespace overcap {
namespace {

// ", pid 17" when the lock's holder has written it there.
std::string PidIn(const Fd& lock) {
  char text[16] = {};
  const ssize_t size = pread(lock.Get(), text, sizeof text - 1, 0);
  const auto pid = ParseInt(Trim(std::string_view(text, size > 0 ? static_cast<size_t>(size) : 0)));
  return pid ? StrCat(", pid ", *pid) : "";
}

constexpr int kCancelSlackSeconds = 60;  // beyond the grace of the ranks, for an agent to end

// The lock that makes an engine the only one of its root; held until the process ends.
Result<Fd> LockRoot(const std::string& root) {
  const std::string path = root + "/daemon.lock";
  Fd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return Fail(ErrnoError(errno, StrCat("cannot open '", path, "'")));
  if (flock(lock.Get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK)
    return Fail(ErrorCode::kConflict, StrCat("an engine runs on '", root, "' already", PidIn(lock)),
                "`overcap daemon stop` ends it; running jobs go on");
  return Fail(ErrnoError(errno, StrCat("cannot lock '", path, "'")));
}

void Log(std::string_view text) {
  const std::string line = StrCat(FormatTimeUtc(PosixClock().WallUs()), " ", text, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Result<void> MakeRoot(const std::string& root) {
  PosixFiles files;
  OC_TRY_VOID(files.MakeFolders(root));
  if (chmod(root.c_str(), 0700) != 0)
    return Fail(ErrnoError(errno, StrCat("cannot make '", root, "' private")));
  const std::string jobs = root + "/jobs";
  if (files.Exists(jobs)) return {};
  OC_TRY_VOID(files.MakeFolders(jobs));
  SpreadFolders(AT_FDCWD, jobs.c_str());
  return {};
}

// Each client and each agent takes a descriptor; the usual soft limit is low.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

EngineInfo InfoOf(const DaemonOptions& options, const Clock& clock) {
  EngineInfo info;
  info.version = OVERCAP_VERSION;
  info.pid = getpid();
  info.root = options.root;
  info.socket = options.root + "/daemon.sock";
  info.started_us = clock.WallUs();
  info.started_monotonic_us = clock.MonotonicUs();
  return info;
}

}  // namespace

Result<int> RunDaemon(const DaemonOptions& options) {
  umask(077);
  OC_TRY_VOID(MakeRoot(options.root));
  auto lock = LockRoot(options.root);
  if (!lock && lock.error().code == ErrorCode::kConflict) {  // whoever wanted one has it
    std::fprintf(stderr, "%s\n", lock.error().message.c_str());
    return 0;
  }
  if (!lock) return Fail(lock.error());
  if (ftruncate(lock->Get(), 0) == 0) (void)dprintf(lock->Get(), "%d\n", getpid());
  RaiseFileLimit();
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGHUP, SIG_IGN);
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);  // what a killed agent leaves behind comes to us

  PosixClock clock;
  PosixFiles files;
  PosixAgents agents(options.binary, options.root + "/daemon.log", options.grace_seconds);
  Engine engine(clock, files, agents, options.root, options.machine);
  engine.SetCancelPatience((options.grace_seconds + kCancelSlackSeconds) * int64_t{1'000'000});
  OC_TRY_VOID(engine.Open());
  if (engine.journal().cut_torn_record())
    Log("a torn last record of the journal was cut off: its act was never done");
  (void)malloc_trim(0);  // reading the journal took much more than it left
  const EngineInfo info = InfoOf(options, clock);
  OC_TRY(listener, ListenUnix(info.socket));
  Api api(engine, clock, info);
  Server server(engine, api, agents, clock, std::move(listener), options.idle_exit_seconds);
  Log(StrCat("engine ", info.version, " started, pid ", info.pid, ", ", engine.table().jobs().size(),
             " jobs"));
  auto served = server.Run();
  (void)unlink(info.socket.c_str());
  Log(served ? "engine ended" : StrCat("engine ended: ", served.error().message));
  if (!served) return Fail(served.error());
  return 0;
}

Result<std::string> RecoverJournal(const std::string& root) {
  OC_TRY(lock, LockRoot(root));
  PosixFiles files;
  const std::string path = root + "/journal";
  auto read = files.Read(path);
  if (!read && read.error().code != ErrorCode::kNotFound) return Fail(read.error());
  const std::string text = read ? *read : "";
  const SalvagedJournal salvaged = SalvageJournal(text);
  if (read && !text.empty() && salvaged.bad_lines.empty())
    return std::string("the journal is not damaged; nothing was changed");
  JobTable table;
  int misfits = 0;
  std::vector<Event> machines;
  for (const Event& event : salvaged.events) {
    if (event.kind == EventKind::kMachine) {
      machines = {event};
    } else {
      misfits += table.Apply(event) ? 0 : 1;
    }
  }
  const std::string kept = StrCat(path, ".damaged-", PosixClock().WallUs() / 1'000'000);
  OC_TRY_VOID(files.WriteAtomic(kept, text, true));
  Journal journal(files, path);
  std::vector<Event> events = table.Compact();
  events.insert(events.begin(), machines.begin(), machines.end());
  OC_TRY_VOID(journal.Rewrite(events));
  std::string report = StrCat("kept the damaged journal as '", kept, "'\n",
                              CountOf(static_cast<int64_t>(salvaged.bad_lines.size()), "bad line"), ", ",
                              CountOf(misfits, "record"), " without their job, ",
                              CountOf(static_cast<int64_t>(table.jobs().size()), "job"), " recovered");
  // A folder without a record: its 'submitted' was among the bad lines.
  for (const std::string& id : ForeignFolders(files, root).OwnIds()) {
    if (table.Find(id) != nullptr) continue;
    report += StrCat("\njob '", id, "' has no record any more; its folder stays: ", root, "/jobs/", id);
  }
  return report;
}

}  // namespace overcap
