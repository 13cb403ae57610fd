// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "daemon/api.h"
#include "daemon/callers.h"
#include "daemon/engine.h"
#include "daemon/foreign_folders.h"
#include "daemon/installed_policy.h"
#include "daemon/posix_agents.h"
#include "daemon/recover.h"
#include "daemon/root_lock.h"
#include "daemon/server.h"
#include "net/unix_socket.h"
#include "sys/clock.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"
#include "sys/spread_folders.h"
#include "sys/user_area_files.h"

namespace overcap {
namespace {

constexpr int kLockPatienceMs = 3000;

// A killed engine may leave a child that was about to become an agent and shares the lock until then. A
// client that starts the engine of its user tries again by itself; the engine of a machine is started only
// once.
template <typename Take>
auto TakeWithin(int patience_ms, const Take& take) {
  constexpr int kLookMs = 20;
  for (;; patience_ms -= kLookMs) {
    auto lock = take();
    if (lock || lock.error().code != ErrorCode::kConflict || patience_ms <= 0) return lock;
    usleep(kLookMs * 1000);
  }
}

void Log(std::string_view text) {
  const std::string line = StrCat(FormatTimeUtc(PosixClock().WallUs()), " ", text, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Result<void> SetMode(const std::string& folder, mode_t mode) {
  if (chmod(folder.c_str(), mode) == 0) return {};
  return Fail(ErrnoError(errno, StrCat("cannot set the permissions of '", folder, "'")));
}

// Nobody but root may be able to put anything in the place of what root believes.
Result<void> CheckOwned(const std::string& folder) {
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0)
    return Fail(ErrnoError(errno, StrCat("cannot look at '", folder, "'")));
  if (S_ISDIR(info.st_mode) && info.st_uid == 0 && (info.st_mode & 022) == 0) return {};
  return Fail(ErrorCode::kDenied, StrCat("'", folder, "' is not a folder that root alone can write"),
              StrCat("chown root ", ShellQuote(folder), " && chmod 711 ", ShellQuote(folder)));
}

// Users pass through it to their areas, and see nothing else.
Result<void> MakeSystemRoot(const std::string& root) {
  PosixFiles files;
  OC_TRY_VOID(files.MakeFolders(root + "/users"));
  OC_TRY_VOID(files.MakeFolders(root + "/claims"));
  for (const std::string& folder : {root, root + "/users"}) {
    OC_TRY_VOID(CheckOwned(folder));
    OC_TRY_VOID(SetMode(folder, 0711));
  }
  OC_TRY_VOID(CheckOwned(root + "/claims"));
  return SetMode(root + "/claims", 0700);
}

Result<void> MakeRoot(const std::string& root) {
  PosixFiles files;
  OC_TRY_VOID(files.MakeFolders(root));
  OC_TRY_VOID(SetMode(root, 0700));
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
  info.socket = options.socket.empty() ? options.root + "/daemon.sock" : options.socket;
  info.started_us = clock.WallUs();
  info.started_monotonic_us = clock.MonotonicUs();
  return info;
}

}  // namespace

namespace {

// What an engine of the machine must have before it serves anybody.
Result<void> PrepareSystem(const UserAreaFiles& areas) {
  if (geteuid() != 0)
    return Fail(ErrorCode::kDenied, "the engine of the machine must be started by root",
                "without --system there is one for each user");
  OC_TRY_VOID(areas.CheckKernel());
  // Acting as a user it must have that user's rights and no group of root's.
  if (setgroups(0, nullptr) != 0) return Fail(ErrnoError(errno, "cannot leave root's groups"));
  return {};
}

// Its open slots end as those of a machine that went down: as their agents have reported, else as lost.
Result<std::string> GiveUpHost(Files& files, const std::string& root, std::string_view gone) {
  PosixClock clock;
  PosixAgents agents("", root + "/daemon.log", 0);
  Engine engine(clock, files, agents, root, Machine());
  return engine.GiveUpHost(gone);
}

Result<int> Serve(const DaemonOptions& options, RootLock& lock, Files& files, Callers& callers) {
  PosixClock clock;
  PosixAgents agents(options.binary, options.root + "/daemon.log", options.grace_seconds);
  Engine engine(clock, files, agents, options.root, options.machine);
  engine.SetCancelPatience((options.grace_seconds + options.slack_seconds) * int64_t{1'000'000},
                           options.grace_seconds * int64_t{1'000'000});
  PosixFiles own;  // no user's: never through their areas
  InstalledPolicy policy(own, options.root, options.policy);
  OC_TRY(in_force, policy.Load());
  if (!policy.problem().empty())
    Log(StrCat("the policy is not taken, the one before stays in force: ", policy.problem()));
  if (in_force) OC_TRY_VOID(engine.SetPolicy(*std::move(in_force), false));
  OC_TRY_VOID(engine.Open());
  lock.Opened();
  if (engine.journal().cut_torn_record())
    Log("a torn last record of the journal was cut off: its act was never done");
  (void)malloc_trim(0);  // reading the journal took much more than it left
  EngineInfo info = InfoOf(options, clock);
  if (options.system && !engine.machine().gpus.empty()) info.gpu_problem = PosixAgents::GpuProblem();
  OC_TRY(listener, options.system ? ListenUnixForAll(info.socket) : ListenUnix(info.socket));
  Api api(engine, clock, info, &policy);
  Server server(engine, api, agents, callers, clock, std::move(listener), options.idle_exit_seconds);
  Log(StrCat("engine ", info.version, " started, pid ", info.pid, ", ", engine.table().jobs().size(),
             " jobs"));
  auto served = server.Run();
  // The machine's stays, with nobody behind it: users' commands shall fail, not turn to engines of their own.
  if (!options.system) (void)unlink(info.socket.c_str());
  Log(served ? "engine ended" : StrCat("engine ended: ", served.error().message));
  if (!served) return Fail(served.error());
  return 0;
}

}  // namespace

Result<int> RunDaemon(const DaemonOptions& options) {
  umask(077);
  PosixFiles files;
  UserAreaFiles areas(files, options.root + "/users");
  if (options.system) OC_TRY_VOID(PrepareSystem(areas));
  OC_TRY_VOID(options.system ? MakeSystemRoot(options.root) : MakeRoot(options.root));
  auto lock = TakeWithin(options.system ? kLockPatienceMs : 0, [&] { return RootLock::Take(options.root); });
  if (!lock && lock.error().code == ErrorCode::kConflict) {  // whoever wanted one has it
    std::fprintf(stderr, "%s\n", lock.error().message.c_str());
    return 0;
  }
  if (!lock) return Fail(lock.error());
  RaiseFileLimit();
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGHUP, SIG_IGN);
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);  // what a killed agent leaves behind comes to us
  if (!options.system) {
    OneCaller one;
    return Serve(options, *lock, files, one);
  }
  PosixClock clock;
  ManyCallers many(areas, clock, options.stall_seconds);
  return Serve(options, *lock, areas, many);
}

// Whether it is the root of a machine's engine: then it has areas of users.
bool IsSystemRoot(const std::string& root) {
  return PosixFiles().Exists(root + "/users") && PosixFiles().Exists(root + "/claims");
}

Result<std::string> RecoverJournal(const std::string& root, std::string_view gone) {
  umask(077);
  if (gone == OwnHost() || (!gone.empty() && gone == HostNameIn(OwnHost())))
    return Fail(ErrorCode::kUsage, StrCat("'", gone, "' is this host"),
                "the engine finds this host's jobs again by itself");
  if (!PosixFiles().Exists(root))
    return Fail(ErrorCode::kNotFound, StrCat("there is no folder '", root, "'"));
  OC_TRY(lock, RootLock::Take(root, gone));
  PosixFiles plain;
  UserAreaFiles areas(plain, root + "/users");
  const bool system = IsSystemRoot(root);
  if (system) OC_TRY_VOID(PrepareSystem(areas));
  Files& files = system ? static_cast<Files&>(areas) : plain;
  const LockHolder& before = lock.before();
  const bool same_boot = before.opened_host == OwnHost() && before.opened_boot_id == BootId();
  OC_TRY(mended, MendRoot(files, root, system, same_boot ? BootId() : "", PosixClock().WallUs()));
  if (gone.empty()) return mended;
  OC_TRY(given_up, GiveUpHost(files, root, gone));
  return StrCat(mended, "\n", given_up);
}

}  // namespace overcap
