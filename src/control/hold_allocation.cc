// SPDX-License-Identifier: Apache-2.0
#include "control/hold_allocation.h"

#include <algorithm>
#include <cstdio>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "control/allocations.h"
#include "control/auto_requests.h"
#include "control/ssh_config_file.h"
#include "control/workspace_auto_start.h"
#include "sys/fd.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"
#include "sys/process.h"
#include "sys/signal_inbox.h"
#include "sys/user.h"
#include "sys/variables.h"

namespace overcap {
namespace {

// How often it looks whether its entry is still there: another host may have written over it where locks do
// not reach.
constexpr int kLookMs = 30'000, kRetryMs = 2'000;

bool IsOwn(const SshEntry& entry, const SshHost& host) {
  return entry.name == host.name && entry.job == host.job && entry.attempt == host.attempt;
}

bool IsThere(const std::string& home, const SshHost& host) {
  const std::vector<SshEntry> entries = ReadSshEntries(home);
  return std::any_of(entries.begin(), entries.end(),
                     [&](const SshEntry& entry) { return IsOwn(entry, host); });
}

// True: ssh knows the way. What keeps it from being written is told once, in the job's log.
bool Announce(const std::string& home, const SshHost& host, std::string* told) {
  if (IsThere(home, host)) return true;
  const auto written = WriteSshHost(home, host);
  if (!written && written.error().message != *told) {
    *told = written.error().message;
    fprintf(stderr, "overcap: no entry for ssh yet: %s\n", told->c_str());
  }
  return written.has_value();
}

// Longer than any grace time: whoever ends the job ends the wait too.
constexpr int64_t kSavePatienceUs = 600'000'000;

// A warning makes the workspaces of this node save themselves.
bool ToldToEnd(SignalInbox* inbox, const std::vector<std::string>& roots) {
  const std::vector<int> signals = inbox->Take();
  if (std::find(signals.begin(), signals.end(), SIGUSR1) != signals.end()) {
    const int told = WarnAutoServices(roots, OwnHostName());
    if (told > 0)
      fprintf(stderr, "overcap: the end is near: %s is saved now\n", CountOf(told, "workspace").c_str());
  }
  return std::any_of(signals.begin(), signals.end(), [](int signal) { return signal != SIGUSR1; });
}

// Services that shells in the allocation have asked for: as processes of the holder they live as long as it
// does.
void StartServices(const std::string& folder) {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  for (const AutoRequest& request : TakeAutoRequests(folder, OwnHostName())) {
    SpawnRequest spawn;
    spawn.argv = request.argv;
    Variables variables = Variables::OfThisProcess();
    variables.Set("PWD", request.folder);
    spawn.env = variables.entries();
    spawn.cwd = "/";
    spawn.group = ProcessGroup::kSession;
    const auto spawned = Spawn(spawn);
    if (!spawned) fprintf(stderr, "overcap: cannot start a service: %s\n", spawned.error().message.c_str());
  }
}

// Readable when a service is asked for. One watch of Overcap's own folder; where it cannot be had, requests
// are found by the look every kLookMs.
Fd WatchRequests(const std::string& folder) {
  (void)PosixFiles().MakeFolders(folder);
  Fd watch(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (watch) (void)inotify_add_watch(watch.Get(), folder.c_str(), IN_CREATE | IN_MOVED_TO);
  return watch;
}

void Drain(const Fd& watch) {
  char events[4096];
  while (watch && read(watch.Get(), events, sizeof events) > 0) {
  }
}

// Where workspaces of this user may be registered.
std::vector<std::string> WorkspaceRoots(const std::string& allocation_file) {
  std::vector<std::string> roots = {RootOfAllocationFile(allocation_file)};
  if (const auto own = OvercapRoot(); own && *own != roots[0]) roots.push_back(*own);
  return roots;
}

}  // namespace

Result<int> RunHoldAllocation(const std::vector<std::string>& words) {
  if (words.size() != 2) return Fail(ErrorCode::kUsage, "hold-allocation takes the file of an allocation");
  OC_TRY(inbox, SignalInbox::Make({SIGTERM, SIGINT, SIGHUP, SIGUSR1}));
  OC_TRY(text, PosixFiles().Read(words[1]));
  OC_TRY(allocation, AllocationFromJson(text));
  const Variables own = Variables::OfThisProcess();
  // A job that was submitted again, or that comes back after its name was given to another.
  if (own.Get("OVERCAP_JOB_ID") != allocation.job) {
    return Fail(ErrorCode::kConflict,
                StrCat("allocation '", allocation.name, "' belongs to job '", allocation.job, "'"),
                "overcap alloc holds a new one");
  }
  OC_TRY(home, HomeFolder());
  const auto attempt = ParseInt(own.Get("OVERCAP_ATTEMPT"));
  const SshHost host =
      SshHostOf(allocation, words[1], OwnHostName(), attempt ? static_cast<int>(*attempt) : 1);
  printf("allocation '%s' is held on %s\n", host.name.c_str(), host.node.c_str());
  fflush(stdout);
  const std::vector<std::string> roots = WorkspaceRoots(words[1]);
  const std::string requests = AutoRequestFolder(words[1]);
  const Fd watch = WatchRequests(requests);
  std::string told;
  while (true) {
    const bool there = Announce(home, host, &told);
    pollfd waits[] = {{inbox.PollFd(), POLLIN, 0}, {watch.Get(), POLLIN, 0}};
    poll(waits, 2, there ? kLookMs : kRetryMs);
    Drain(watch);
    StartServices(requests);
    if (ToldToEnd(&inbox, roots)) break;
  }
  const auto removed = RemoveSshHosts(home, [&](const SshEntry& entry) { return IsOwn(entry, host); });
  for (const std::string& line : EndAutoServices(roots, OwnHostName(), allocation.job, kSavePatienceUs)) {
    fprintf(stderr, "overcap: %s\n", line.c_str());
  }
  (void)PosixFiles().RemoveTree(requests);
  OC_TRY_VOID(removed);
  return 0;
}

}  // namespace overcap
