// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/sweep_mounts.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "control/mounts/copy_mount.h"
#include "control/mounts/job_stores.h"
#include "control/mounts/mount_table.h"
#include "control/mounts/node_folder.h"
#include "control/mounts/rclone_cache.h"
#include "sys/clock.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kKeptSeconds = int64_t{7} * 86400, kUnusedSeconds = 3600;

// One folder whose keeper is gone.
class Leftover {
 public:
  Leftover(SlotFolder slot, std::string kept, const Variables& variables, bool upload,
           std::function<void()> alive)
      : slot_(std::move(slot)),
        kept_(std::move(kept)),
        variables_(variables),
        upload_(upload),
        alive_(std::move(alive)) {}

  void Clear(MountsSwept* swept) {
    if (PosixFiles().Exists(slot_.Record())) return ClearRecorded(swept);
    // One that was never used; on a file system without locks it may be one that is just begun elsewhere.
    struct stat info {};
    if (stat(slot_.path().c_str(), &info) != 0) return;
    if (PosixClock().WallUs() / 1'000'000 - info.st_mtim.tv_sec > kUnusedSeconds && slot_.Remove())
      ++swept->slots;
  }

 private:
  void ClearRecorded(MountsSwept* swept) {
    const auto text = PosixFiles().Read(slot_.Record());
    const auto record = text ? ParseMountsRecord(*text) : Result<MountsRecord>(Fail(text.error()));
    if (!record) return swept->unsaved.push_back(StrCat("'", slot_.path(), "': ", record.error().message));
    if (record->host != OwnHostName() || !TakeMountsAway()) return;
    const auto book = BookOfMounts(record->mounts, variables_);
    for (const MountSpec& mount : record->mounts) {
      const Result<void> cleared = !book ? Fail(book.error()) : ClearOne(mount, *book, swept);
      if (!cleared)
        swept->unsaved.push_back(
            StrCat("mount '", mount.name, "' in '", slot_.path(), "': ", cleared.error().message));
    }
    if (slot_.Remove()) ++swept->slots;
  }

  bool TakeMountsAway() {
    const auto points = MountsBelow(slot_.path());
    if (!points) return false;
    for (const std::string& point : *points) (void)Unmount(point, true, variables_.entries());
    const auto left = MountsBelow(slot_.path());
    return left && left->empty();
  }

  Result<void> ClearOne(const MountSpec& mount, const StoreBook& book, MountsSwept* swept) {
    const MountPlaces places = slot_.PlacesOf(mount.name);
    if (IsCopy(mount.mode)) return ClearCopy(mount, book, swept);
    (void)PosixFiles().Remove(places.config);
    (void)rmdir(places.point.c_str());
    const int64_t dirty = mount.mode == MountMode::kWrite ? CountDirty(places.cache) : 0;
    if (dirty > 0)
      return Fail(ErrorCode::kConflict, StrCat(CountOf(dirty, "file"),
                                               " that rclone has not uploaded stay in '", places.cache, "'"));
    return RemoveUnmounted(places.cache);
  }

  Result<void> ClearCopy(const MountSpec& mount, const StoreBook& book, MountsSwept* swept) {
    PosixFiles files;
    const std::string folder = slot_.PlacesOf(mount.name).point, had = slot_.HadFile(mount.name);
    OC_TRY(place, PlaceOfMount(mount));
    CopyMount copy({mount, place, folder, had, kept_}, &book);
    // Without the list the ranks never began.
    if (mount.mode == MountMode::kCopyRead || !files.Exists(had) || !files.Exists(folder)) return copy.Drop();
    if (!upload_)
      return Fail(ErrorCode::kConflict,
                  "what the job wrote may not be in its store yet; 'overcap gc' uploads it");
    OC_TRY_VOID(copy.Release({.alive = alive_}));
    ++swept->saved;
    return {};
  }

  SlotFolder slot_;
  const std::string kept_;
  const Variables& variables_;
  const bool upload_;
  const std::function<void()> alive_;
};

}  // namespace

MountsSwept SweepMounts(const std::string& node_folder, const Variables& variables,
                        const SweepUploads& uploads) {
  MountsSwept swept;
  const std::string kept = node_folder + "/kept";
  const auto names = PosixFiles().List(node_folder);
  if (!names) return swept;
  for (const std::string& name : *names) {
    if (name == "kept") continue;
    auto slot = SlotFolder::Take(StrCat(node_folder, "/", name));
    const bool upload = uploads.all || (!uploads.job.empty() && name.starts_with(uploads.job + "."));
    if (slot) Leftover(std::move(*slot), kept, variables, upload, uploads.alive).Clear(&swept);
  }
  RemoveOldCopies(kept, kKeptSeconds, PosixClock().WallUs() / 1'000'000);
  return swept;
}

MountsSwept SweepMountsHere(const Config& config, const std::string& cluster) {
  const auto found = config.clusters.find(cluster);
  const Variables variables = Variables::OfThisProcess();
  const auto folder =
      NodeFolderPath(found == config.clusters.end() ? "" : found->second.mounts_at, variables);
  if (!folder) return {0, 0, {folder.error().message}};
  if (access(folder->c_str(), F_OK) != 0) return {};
  const auto own = OpenNodeFolder(*folder);
  return own ? SweepMounts(*own, variables, {.all = true}) : MountsSwept{0, 0, {own.error().message}};
}

}  // namespace overcap
