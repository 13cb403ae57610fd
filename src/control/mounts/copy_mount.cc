// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/copy_mount.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "control/mounts/mount_table.h"
#include "control/transfer/folder_view.h"
#include "control/transfer/transfer.h"
#include "snapshot/sha256.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr size_t kHashDigits = 16;
constexpr OpenStoreOptions kAsPeopleHaveIt = {
    .create = true, .keys = KeyRule::kAny, .private_files = false, .durable = false};

TransferOptions OptionsFor(const CopyMount::Hooks& hooks) {
  TransferOptions options;
  options.stop = hooks.stop;
  if (hooks.alive) options.progress = [alive = hooks.alive](const TransferProgress&) { alive(); };
  return options;
}

// An error for a transfer that has not copied all.
Result<void> Whole(const TransferReport& report, std::string_view what) {
  if (report.stopped) return Fail(ErrorCode::kConflict, StrCat("stopped while it was ", what));
  if (report.failed == 0 && !report.gave_up) return {};
  if (report.problems.empty()) return Fail(ErrorCode::kUnavailable, StrCat("not all of it was ", what));
  const TransferProblem& first = report.problems.front();
  return Fail(first.error.code,
              StrCat(CountOf(report.failed, "file"), " could not be ", what, "; ", Quoted(first.key, 200),
                     ": ", first.error.message),
              first.error.hint);
}

// Two names are exchanged for one at once; what stood there is removed.
void Replace(const std::string& from, const std::string& to) {
  const std::string old = StrCat(to, ".old-", getpid());
  (void)rename(to.c_str(), old.c_str());
  if (rename(from.c_str(), to.c_str()) == 0) (void)utimensat(AT_FDCWD, to.c_str(), nullptr, 0);
  (void)RemoveUnmounted(old);
}

}  // namespace

std::string CopyMount::KeptPlace() const {
  std::string text = in_.mount.store;
  for (const auto& [name, value] : in_.mount.access) text += StrCat("\n", name, "=", value);
  return StrCat(in_.kept, "/", Sha256Of(text).Hex().substr(0, kHashDigits));
}

Result<std::unique_ptr<Store>> CopyMount::OpenCopy() const {
  StoreLocation location;
  location.path = in_.folder;
  return OpenStore(location, {}, kAsPeopleHaveIt);
}

Result<void> CopyMount::Download(const Hooks& hooks) {
  const bool taken = in_.mount.cache_bytes > 0 && rename(KeptPlace().c_str(), in_.folder.c_str()) == 0;
  if (!taken && mkdir(in_.folder.c_str(), 0700) != 0)
    return Fail(ErrnoError(errno, StrCat("cannot make '", in_.folder, "'")));
  Result<void> filled = Fill(hooks);
  if (!filled) (void)Drop();
  return filled;
}

Result<void> CopyMount::Fill(const Hooks& hooks) {
  OC_TRY(store, OpenStoreAt(book_, in_.place, {.keys = KeyRule::kAny}));
  OC_TRY(copy, OpenCopy());
  TransferOptions options = OptionsFor(hooks);
  options.remove_extra = true;
  auto report = TransferAll(*store, *copy, options);
  if (!report && report.error().code == ErrorCode::kConflict) {  // the store is empty, an older copy is not
    OC_TRY(cleared, RemoveAll(*copy, "", OptionsFor(hooks)));
    report = std::move(cleared);
  }
  if (!report) return Fail(std::move(report).error());
  OC_TRY_VOID(Whole(*report, "downloaded"));
  if (report->left_out > 0 && hooks.note)
    hooks.note(StrCat("mount '", in_.mount.name, "': ", CountOf(report->left_out, "object"),
                      " whose names no file can have are not in the copy"));
  if (in_.mount.mode == MountMode::kCopyRead && in_.mount.cache_bytes == 0) return {};
  OC_TRY(had, StampsOf(*copy, in_.folder));
  return PosixFiles().WriteAtomic(in_.had_file, StampsToText(had), false);
}

Result<void> CopyMount::Upload(const Hooks& hooks) {
  OC_TRY(text, PosixFiles().Read(in_.had_file));
  OC_TRY(had, StampsFromText(text));
  OC_TRY(copy, OpenCopy());
  OC_TRY(now, StampsOf(*copy, in_.folder));
  const CopyStamps changed = ChangedSince(had, now);
  if (in_.mount.mode == MountMode::kCopy && !changed.empty()) {
    OpenStoreOptions as_people = kAsPeopleHaveIt;
    as_people.create = false;
    OC_TRY(store, OpenStoreAt(book_, in_.place, as_people));
    OnlyKeys only(*copy, changed);
    TransferOptions options = OptionsFor(hooks);
    options.all = true;
    options.flush = true;
    OC_TRY(report, TransferAll(only, *store, options));
    OC_TRY_VOID(Whole(report, "uploaded"));
  }
  // A copy that was only to be read and was changed is no copy any more.
  const bool usable = in_.mount.mode == MountMode::kCopy || (changed.empty() && now.size() == had.size());
  return usable ? Keep(now) : Result<void>();
}

// For the next job, when it is small enough.
Result<void> CopyMount::Keep(const CopyStamps& now) {
  int64_t bytes = 0;
  for (const auto& [key, stamp] : now) bytes += stamp.size;
  if (in_.mount.cache_bytes == 0 || bytes > in_.mount.cache_bytes) return {};
  OC_TRY_VOID(PosixFiles().MakeFolders(in_.kept));
  Replace(in_.folder, KeptPlace());
  return {};
}

Result<void> CopyMount::Release(const Hooks& hooks) {
  const bool looks = in_.mount.mode == MountMode::kCopy || in_.mount.cache_bytes > 0;
  if (looks && PosixFiles().Exists(in_.had_file)) {
    Hooks patient = hooks;
    patient.stop = nullptr;  // the end has come: nothing is left out for it
    OC_TRY_VOID(Upload(patient));
  }
  return Drop();
}

Result<void> CopyMount::Drop() {
  OC_TRY_VOID(RemoveUnmounted(in_.folder));
  return PosixFiles().Remove(in_.had_file);
}

void RemoveOldCopies(const std::string& kept, int64_t older_than_seconds, int64_t now_seconds) {
  const auto names = PosixFiles().List(kept);
  if (!names) return;
  for (const std::string& name : *names) {
    const std::string path = StrCat(kept, "/", name);
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0 || now_seconds - info.st_mtim.tv_sec < older_than_seconds) continue;
    const std::string gone = StrCat(path, ".old-", getpid());  // so that nobody takes it half removed
    if (rename(path.c_str(), gone.c_str()) == 0) (void)RemoveUnmounted(gone);
  }
}

}  // namespace overcap
