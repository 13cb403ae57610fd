// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/testing/child_run.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/file_io.h"
#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap {

std::string RunInChild(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    const std::string said = work();
    _exit(WriteAll(ends[1], said) == 0 ? 0 : 1);
  }
  close(ends[1]);
  const Fd in(ends[0]);
  std::string said;
  (void)ReadToEnd(in.Get(), 100, &said);
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return "no child";
  if (WIFSIGNALED(status)) return StrCat("died by signal ", WTERMSIG(status));
  return said;
}

bool MountSmall(const std::string& folder, const std::string& size) {
  const bool root = geteuid() == 0;
  if (unshare(root ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("small", folder.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
}

bool ResizeSmall(const std::string& folder, const std::string& size) {
  return mount("small", folder.c_str(), "tmpfs", MS_REMOUNT, ("size=" + size).c_str()) == 0;
}

}  // namespace overcap
