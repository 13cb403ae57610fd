// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/fanout_target.h"

#include <sys/stat.h>

#include "base/text.h"
#include "control/expand_folder.h"
#include "control/precious_folder.h"
#include "snapshot/restore/folder_fds.h"
#include "sys/posix_files.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr std::string_view kMark = "overcap fanout 1\n";
constexpr std::chrono::milliseconds kLockPatience{2000};

Result<void> MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return Fail(ErrnoError(errno, StrCat("cannot make ", Quoted(path, 300))));
}

// Of what a fan-out may take: empty, or its own.
Result<void> CheckIsOurs(const FanoutTarget& target, bool made) {
  if (made || PosixFiles().Exists(target.Local("mark"))) return {};
  OC_TRY(names, PosixFiles().List(target.path));
  // Another one may have begun to make it just now: then the lock tells.
  if (names.empty() || names == std::vector<std::string>{".overcap"}) return {};
  return Fail(ErrorCode::kConflict,
              StrCat(Quoted(target.path, 300), " is not empty, and no fan-out has made it"),
              "give another folder, or --force to have all in it replaced");
}

}  // namespace

Result<FanoutTarget> FanoutTarget::Take(const std::string& typed, bool force) {
  FanoutTarget target;
  OC_TRY(path, ExpandFolder(typed, Variables::OfThisProcess()));
  target.path = std::move(path);
  OC_TRY_VOID(RefusePreciousFolder(target.path, Variables::OfThisProcess()));
  OC_TRY(folder, TargetFolder::Open(target.path, true));
  if (!force) OC_TRY_VOID(CheckIsOurs(target, folder.made));
  OC_TRY_VOID(MakeFolder(target.path + "/.overcap"));
  OC_TRY_VOID(MakeFolder(target.path + "/.overcap/fanout"));
  OC_TRY_VOID(MakeFolder(target.Local("kept")));
  Result<FileLock> lock = LockFile(target.Local("lock"), kLockPatience);
  if (!lock && lock.error().code == ErrorCode::kUnavailable) {
    return Fail(ErrorCode::kConflict, StrCat("another fan-out works on ", Quoted(target.path, 300)),
                "a folder that several nodes share needs no fan-out: give one of each node's own disk");
  }
  if (!lock) return Fail(lock.error());
  target.lock = *std::move(lock);
  OC_TRY_VOID(PosixFiles().WriteAtomic(target.Local("mark"), kMark, false));
  if (const Result<std::string> text = PosixFiles().Read(target.Local("chunks"))) {
    Result<FolderChunks> old = FolderChunks::Decode(*text, target.path);
    if (old && old->OpenFolder()) target.old = *std::move(old);
  }
  return target;
}

}  // namespace overcap
