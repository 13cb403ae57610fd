// SPDX-License-Identifier: Apache-2.0
#include "agent/start_as.h"

#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/slot_claim.h"
#include "base/text.h"
#include "sys/become_user.h"
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

namespace {

// From here on this process is the user's, for good.
std::optional<Error> BecomeUser(const StartAs& start, const std::optional<UserEntry>& user) {
  LeaveRootBehind();
  // A job may have waited for long, so the groups are those of now; for users that the machine's databases do
  // not know, those of the submit.
  if (auto failed = SetUsersGroups(user, start.groups)) return *failed;
  // What is likely to fail has been done by now; from the claim on this is the attempt's agent.
  if (auto failed = MakeClaim(start.claim)) return *failed;
  if (auto limited = SetOwnLimits(start.limits); !limited) return limited.error();
  if (auto failed = SetUser(start.uid, user ? user->gid : start.gid)) return *failed;
  umask(077);
  (void)prctl(PR_SET_DUMPABLE, 0);  // until an exec the user cannot read what was root's memory
  OpenLog(start.area);
  return std::nullopt;
}

}  // namespace

Error BecomeAgent(const StartAs& start) {
  const auto user = FindUser(start.uid);
  const std::string program = OwnProgram();
  if (auto failed = BecomeUser(start, user)) return *std::move(failed);
  return Execute(program, start, user);
}

bool IsHelper(const StartAs& start) {
  return start.claim.empty() && !start.words.empty() &&
         (start.words[0] == "empty" || start.words[0] == "spare");
}

Result<void> BecomeHelper(const StartAs& start) {
  if (auto failed = BecomeUser(start, FindUser(start.uid))) return Fail(*std::move(failed));
  return {};
}

}  // namespace overcap
