// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/check_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/user.h"

namespace overcap {
namespace {

using Health = ClusterFinding::Health;

struct FileSystem {
  long type;
  const char* name;
  bool alone;
};
constexpr FileSystem kFileSystems[] = {
    {0x6969, "nfs", false},        {0x0BD00BD0, "lustre", false}, {0x47504653, "gpfs", false},
    {0x19830326, "beegfs", false}, {0x00C36400, "ceph", false},   {0x7461636f, "ocfs2", false},
    {0x01161970, "gfs2", false},   {0x5346414F, "afs", false},    {0xFF534D42, "cifs", false},
    {0x01021997, "9p", false},     {0xEF53, "ext4", true},        {0x58465342, "xfs", true},
    {0x9123683E, "btrfs", true},   {0x01021994, "tmpfs", true},   {0x794c7630, "overlay", true},
    {0x858458f6, "ramfs", true},   {0x2FC12FC1, "zfs", true},
};

bool CanWrite(const std::string& root, int* error) {
  std::string path = StrCat(root, "/.check-XXXXXX");
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  *error = errno;
  if (fd < 0) return false;
  close(fd);
  unlink(path.c_str());
  return true;
}

}  // namespace

std::string FileSystemName(long type) {
  for (const FileSystem& one : kFileSystems) {
    if (one.type == (type & 0xFFFFFFFFL)) return one.name;
  }
  return {};
}

bool IsOfThisMachineAlone(const std::string& name) {
  return std::any_of(std::begin(kFileSystems), std::end(kFileSystems),
                     [&](const FileSystem& one) { return one.alone && one.name == name; });
}

ClusterFinding CheckJobFolder(const std::string& root) {
  (void)PosixFiles().MakeFolders(root);  // as the first submit does
  int error = 0;
  if (!CanWrite(root, &error)) {
    return {"folder", Health::kBroken, StrCat("cannot write in '", root, "': ", strerror(error)),
            std::string(kRootHint)};
  }
  struct statfs stat {};
  if (statfs(root.c_str(), &stat) != 0) return {"folder", Health::kFine, StrCat("'", root, "'"), ""};
  const std::string name = FileSystemName(static_cast<long>(stat.f_type));
  const std::string on = name.empty() ? "" : StrCat(" on ", name);
  if (IsOfThisMachineAlone(name)) {
    return {"folder", Health::kWorse,
            StrCat("'", root, "' is", on,
                   ": compute nodes see it only if it is this machine's disk that they mount"),
            "jobs need a folder that all nodes share; set OVERCAP_HOME to one, or try: overcap submit true"};
  }
  return {"folder", Health::kFine,
          StrCat("'", root, "'", on, "; that nodes see the same folder is proven only by a job"), ""};
}

}  // namespace overcap
