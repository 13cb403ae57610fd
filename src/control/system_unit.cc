// SPDX-License-Identifier: Apache-2.0
#include "control/system_unit.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <sys/stat.h>

#include "base/text.h"

namespace overcap {

namespace {

std::string InstallHint(const std::string& binary) {
  return StrCat("sudo install -m 755 ", ShellQuote(binary),
                " /usr/local/bin/overcap, then: /usr/local/bin/overcap daemon --system --print-unit");
}

}  // namespace

Result<std::string> CheckRootsProgram(const std::string& binary) {
  char resolved[PATH_MAX];
  if (realpath(binary.c_str(), resolved) == nullptr)
    return Fail(ErrorCode::kNotFound, StrCat("'", binary, "' cannot be found"), InstallHint(binary));
  std::string groups;
  for (std::string path = resolved; !path.empty(); path.resize(path.rfind('/'))) {
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0)
      return Fail(ErrnoError(errno, StrCat("cannot look at '", path, "'")));
    // In a folder like /tmp others cannot put anything in the place of what is root's.
    const bool sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
    if (info.st_uid != 0 || ((info.st_mode & S_IWOTH) != 0 && !sticky))
      return Fail(ErrorCode::kDenied,
                  StrCat("'", path, "' can be written by users other than root, and root would run '",
                         resolved, "' at each start of the machine"),
                  InstallHint(binary));
    if (info.st_gid != 0 && (info.st_mode & S_IWGRP) != 0 && !sticky)
      groups = StrCat("a group other than root's can write '", path, "', and root will run '", resolved, "'");
  }
  return groups;
}

std::string SystemUnit(const std::string& binary, const std::string& words) {
  return StrCat(R"([Unit]
Description=Overcap: the queue of this machine
After=local-fs.target nss-user-lookup.target network.target
Wants=nss-user-lookup.target
# However often it ends: it is started again.
StartLimitIntervalSec=0

[Service]
Type=simple
ExecStart=)",
                binary, " daemon --system", words, R"(
Restart=always
RestartSec=1
# Jobs outlive the engine: only the engine itself is stopped, and it finds them again.
KillMode=process
# The engine makes a control group for each job below its own.
Delegate=yes
RuntimeDirectory=overcap
RuntimeDirectoryMode=0755
RuntimeDirectoryPreserve=yes
StateDirectory=overcap
StateDirectoryMode=0711
# What jobs may have that say nothing; each gets the limits of its submitter.
LimitNOFILE=1048576
TasksMax=infinity
OOMPolicy=continue

[Install]
WantedBy=multi-user.target)");
}

}  // namespace overcap
