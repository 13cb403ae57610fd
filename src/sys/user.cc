// SPDX-License-Identifier: Apache-2.0
#include "sys/user.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <optional>
#include <pwd.h>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "base/text.h"

namespace overcap {
namespace {

std::optional<UserEntry> LookUp(uid_t uid) {
  std::vector<char> buffer(1024);
  passwd row{};
  passwd* found = nullptr;
  int error;
  while ((error = getpwuid_r(uid, &row, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < 1 << 20) {
    buffer.resize(buffer.size() * 4);
  }
  if (error != 0 || found == nullptr) return std::nullopt;
  return UserEntry{row.pw_name, row.pw_dir, row.pw_shell, row.pw_gid};
}

// The variable without slashes at its end; empty when it is not set.
std::string Variable(const char* name) {
  const char* value = getenv(name);
  std::string path = value == nullptr ? "" : value;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool IsAbsolute(std::string_view path) {
  return path.starts_with('/');
}

}  // namespace

std::optional<UserEntry> FindUser(uid_t uid) {
  return LookUp(uid);
}

std::string UserName() {
  const auto row = LookUp(geteuid());
  return row && !row->name.empty() ? row->name : std::to_string(geteuid());
}

std::string LoginShell() {
  const auto row = LookUp(geteuid());
  const bool usable = row && IsAbsolute(row->shell) && access(row->shell.c_str(), X_OK) == 0;
  return usable ? row->shell : "/bin/sh";
}

Result<std::string> HomeFolder() {
  if (const std::string home = Variable("HOME"); IsAbsolute(home)) return home;
  const auto row = LookUp(geteuid());
  if (row && IsAbsolute(row->home)) return row->home;
  return Fail(ErrorCode::kUsage, "this user has no home folder",
              "set HOME or OVERCAP_HOME to an absolute path");
}

Result<std::string> OvercapRoot() {
  if (const std::string root = Variable("OVERCAP_HOME"); !root.empty()) {
    if (IsAbsolute(root)) return root;
    return Fail(ErrorCode::kUsage, StrCat("OVERCAP_HOME is '", root, "', which is no absolute path"),
                StrCat("export OVERCAP_HOME=\"$PWD/", root, "\""));
  }
  if (const std::string state = Variable("XDG_STATE_HOME"); IsAbsolute(state)) return state + "/overcap";
  OC_TRY(home, HomeFolder());
  return home + (home.size() == 1 ? "" : "/") + ".local/state/overcap";
}

// It can only be asked by setting it; what another thread makes meanwhile is private.
int OwnUmask() {
  const mode_t own = umask(077);
  umask(own);
  return static_cast<int>(own);
}

int64_t OwnFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  constexpr rlim_t kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(limit.rlim_cur, kMost));
}

}  // namespace overcap
