// SPDX-License-Identifier: Apache-2.0
#include "agent/start_as.h"

#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <optional>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/slot_claim.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/log_bound.h"
#include "sys/own_program.h"
#include "sys/posix_files.h"
#include "sys/user.h"

namespace overcap {
namespace {

constexpr std::string_view kPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

Result<uint32_t> Id(std::string_view text) {
  const auto value = ParseInt(text);
  if (!value || *value < 0 || *value >= UINT32_MAX)
    return Fail(ErrorCode::kUsage, StrCat("'", text, "' is no user or group id"));
  return static_cast<uint32_t>(*value);
}

Result<void> SetWord(std::string_view flag, const std::string& value, StartAs* start, bool* has_uid) {
  if (flag == "--uid" || flag == "--gid") {
    OC_TRY(id, Id(value));
    (flag == "--uid" ? start->uid : start->gid) = id;
    *has_uid = *has_uid || flag == "--uid";
  } else if (flag == "--groups") {
    for (const std::string& part : value.empty() ? std::vector<std::string>() : Split(value, ',')) {
      OC_TRY(id, Id(part));
      start->groups.push_back(id);
    }
  } else if (flag == "--limits") {
    OC_TRY(limits, ParseLimits(value));
    start->limits = std::move(limits);
  } else if (flag == "--claim" || flag == "--area") {
    if (!value.starts_with('/')) return Fail(ErrorCode::kUsage, StrCat("'", value, "' is no absolute path"));
    (flag == "--claim" ? start->claim : start->area) = value;
  } else {
    return Fail(ErrorCode::kUsage, StrCat("unknown argument '", flag, "'"));
  }
  return {};
}

Error Failed(std::string_view what) {
  return ErrnoError(errno, StrCat("cannot ", what));
}

std::optional<Error> MakeClaim(const std::string& path) {
  if (path.empty()) return std::nullopt;
  PosixFiles files;
  if (auto made = files.MakeFolders(path.substr(0, path.rfind('/'))); !made) return made.error();
  auto claimed = files.CreateExclusive(path, ClaimToJson(OwnClaim()) + "\n");
  return claimed ? std::nullopt : std::optional(claimed.error());
}

// Nothing of root's may follow: descriptors, keys, a place in the kernel's order of victims, capabilities
// that an exec would keep.
void LeaveThingsBehind() {
  close_range(3, UINT_MAX, 0);
  (void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  const Fd oom(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (oom) (void)WriteAll(oom.Get(), "0");
  (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

bool HasCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return true;
  return (data[0].permitted | data[1].permitted | data[0].effective | data[1].effective) != 0;
}

void ClearInheritable() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return;
  data[0].inheritable = data[1].inheritable = 0;
  (void)syscall(SYS_capset, &header, data);
}

// What the lists say now, since a job may have waited for long; for users whom they do not know, as it was at
// the submit.
std::optional<Error> SetGroups(const StartAs& start, const std::optional<UserEntry>& user) {
  const int set =
      user ? initgroups(user->name.c_str(), user->gid) : setgroups(start.groups.size(), start.groups.data());
  return set == 0 ? std::nullopt : std::optional(Failed("set the groups"));
}

std::optional<Error> SetIds(uid_t uid, gid_t gid) {
  if (setresgid(gid, gid, gid) != 0) return Failed("set the group");
  if (setresuid(uid, uid, uid) != 0) return Failed("set the user");
  uid_t real = 0, effective = 0, saved = 0;
  if (getresuid(&real, &effective, &saved) != 0 || real != uid || effective != uid || saved != uid)
    return Error{ErrorCode::kInternal, "the kernel has not set the user", ""};
  if (uid != 0 && (setuid(0) == 0 || HasCapabilities()))
    return Error{ErrorCode::kInternal, "root's rights could not be left behind", ""};
  return std::nullopt;
}

// Its complaints, in a file that the user owns.
void OpenLog(const std::string& area) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const Fd log(open(StrCat(area, "/agent.log").c_str(), kFlags, 0600));
  struct stat info {};
  const bool plain = log && fstat(log.Get(), &info) == 0 && S_ISREG(info.st_mode);
  if (plain) LogBound({{log.Get(), "agents"}}, kLogsMaxByFileSystem, 0).Look(0);
  const Fd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  (void)dup2(plain ? log.Get() : null.Get(), STDERR_FILENO);
}

std::vector<std::string> Environment(const StartAs& start, const std::optional<UserEntry>& user) {
  const std::string name = user ? user->name : std::to_string(start.uid);
  return {StrCat("HOME=", user && user->home.starts_with('/') ? user->home : start.area),
          StrCat("USER=", name),
          StrCat("LOGNAME=", name),
          StrCat("SHELL=", user && user->shell.starts_with('/') ? user->shell : "/bin/sh"),
          StrCat("OVERCAP_HOME=", start.area),
          std::string(kPath)};
}

Error Execute(const std::string& program, const StartAs& start, const std::optional<UserEntry>& user) {
  std::vector<std::string> words = {"overcap", "agent"};
  words.insert(words.end(), start.words.begin(), start.words.end());
  std::vector<std::string> env = Environment(start, user);
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : env) envp.push_back(variable.data());
  argv.push_back(nullptr), envp.push_back(nullptr);
  execve(program.c_str(), argv.data(), envp.data());
  return Failed(StrCat("run '", program, "' as user ", start.uid));
}

}  // namespace

Result<StartAs> ParseStartAs(const std::vector<std::string>& args) {
  StartAs start;
  bool has_uid = false;
  size_t i = 0;
  for (; i + 1 < args.size() && args[i] != "--"; i += 2) {
    if (auto set = SetWord(args[i], args[i + 1], &start, &has_uid); !set)
      return Fail(ErrorCode::kUsage, StrCat("agent as: ", set.error().message));
  }
  if (i >= args.size() || args[i] != "--" || !has_uid || start.area.empty())
    return Fail(ErrorCode::kUsage, "agent as takes --uid, --gid, --area and '--' before its words");
  start.words.assign(args.begin() + static_cast<std::ptrdiff_t>(i) + 1, args.end());
  return start;
}

Error BecomeAgent(const StartAs& start) {
  const auto user = FindUser(start.uid);
  LeaveThingsBehind();
  ClearInheritable();
  if (auto failed = SetGroups(start, user)) return *failed;
  // What is likely to fail has been done by now; from the claim on this is the attempt's agent.
  if (auto failed = MakeClaim(start.claim)) return *failed;
  const std::string program = OwnProgram();
  if (auto limited = SetOwnLimits(start.limits); !limited) return limited.error();
  if (auto failed = SetIds(start.uid, user ? user->gid : start.gid)) return *failed;
  umask(077);
  (void)prctl(PR_SET_DUMPABLE, 0);  // until the exec nobody looks into what was root's memory
  OpenLog(start.area);
  return Execute(program, start, user);
}

}  // namespace overcap
