// SPDX-License-Identifier: Apache-2.0
#include "agent/code_folder.h"

#include <algorithm>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/text.h"
#include "snapshot/materialise.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int kLockTries = 120'000;
constexpr int64_t kLockPauseUs = 5'000;

Result<Fd> LockFolder(const std::string& path, Supervisor* supervisor) {
  Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open '", path, "'")));
  for (int i = 0; i < kLockTries; ++i) {
    if (flock(fd.Get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK && errno != EINTR)
      return Fail(ErrnoError(errno, StrCat("cannot lock '", path, "'")));
    if (supervisor->CancelRequested())
      return Fail(ErrorCode::kConflict, "cancelled while the code was copied");
    supervisor->Pause(kLockPauseUs);
  }
  return Fail(ErrorCode::kUnavailable, StrCat("'", path, "' was locked by another agent for too long"));
}

// Whether slots of an array cannot share one copy: each has mounts of its own, or takes it away from nodes
// that have no agent when it ends.
bool NeedsOwnCopy(const JobSpec& spec) {
  if (spec.array.empty()) return false;
  return (!spec.store.empty() && spec.resources.nodes > 1) ||
         !std::all_of(spec.mounts.begin(), spec.mounts.end(), IsLinkedFolder);
}

Result<void> CopyShared(const std::string& tree, const AttemptFolder& attempt, const CodeCopier& copy,
                        Supervisor* supervisor) {
  PosixFiles files;
  if (files.Exists(attempt.Code())) return {};
  // Some file systems over a network have no locks: then several agents may copy, and the first has done it.
  const auto lock = LockFolder(attempt.Path(), supervisor);
  if (!lock && lock.error().code == ErrorCode::kConflict) return Fail(lock.error());
  if (files.Exists(attempt.Code())) return {};
  Result<void> copied = copy(tree, attempt.Code());
  if (!copied && !supervisor->CancelRequested() && files.Exists(attempt.Code())) return {};
  return copied;
}

}  // namespace

CodeCopier CopyFromStore(const SnapshotStore& store, Supervisor* supervisor) {
  return [&store, supervisor](const std::string& tree, const std::string& to) -> Result<void> {
    MaterialiseOptions options;
    options.cancelled = [supervisor] { return supervisor->CancelRequested(); };
    OC_TRY_VOID(Materialise(store, tree, to, options));
    return {};
  };
}

std::string CodeFolder(const JobSpec& spec, const AttemptFolder& attempt) {
  return NeedsOwnCopy(spec) ? attempt.OwnCode() : attempt.Code();
}

Result<std::string> PrepareFolder(const JobSpec& spec, const AttemptFolder& attempt, const CodeCopier& copy,
                                  Supervisor* supervisor) {
  std::string folder = spec.workdir;
  if (!spec.snapshot.empty()) {
    const std::string code = CodeFolder(spec, attempt);
    if (spec.array.empty() || NeedsOwnCopy(spec)) {
      OC_TRY_VOID(copy(spec.snapshot, code));
    } else {
      OC_TRY_VOID(CopyShared(spec.snapshot, attempt, copy, supervisor));
    }
    const bool top = spec.workdir.empty() || spec.workdir == ".";
    folder = top ? code : StrCat(code, "/", spec.workdir);
  }
  struct stat info;
  if (stat(folder.c_str(), &info) != 0)
    return Fail(ErrnoError(errno, StrCat("cannot start in folder '", folder, "'")));
  if (!S_ISDIR(info.st_mode))
    return Fail(ErrorCode::kUsage, StrCat("'", folder, "' is no folder to start in"));
  return folder;
}

}  // namespace overcap
