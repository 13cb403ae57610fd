// SPDX-License-Identifier: Apache-2.0
#include "agent/trash.h"

#include <sys/resource.h>

#include "sys/posix_files.h"

namespace overcap {

Result<int> EmptyFolder(const std::string& folder) {
  (void)setpriority(PRIO_PROCESS, 0, 10);
  PosixFiles files;
  OC_TRY(names, files.List(folder));
  for (const std::string& name : names) OC_TRY_VOID(files.RemoveTree(folder + "/" + name));
  return 0;
}

Result<int> RemoveFolder(const std::string& folder) {
  (void)setpriority(PRIO_PROCESS, 0, 10);
  OC_TRY_VOID(PosixFiles().RemoveTree(folder));
  return 0;
}

}  // namespace overcap
