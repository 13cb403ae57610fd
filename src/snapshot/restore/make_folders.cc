// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/make_folders.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/text.h"
#include "snapshot/restore/file_verdict.h"
#include "snapshot/restore/thread_team.h"

namespace overcap {
namespace {

constexpr uint8_t kFinished = 2;  // in RestoreScene::touched: nothing is left to be done

class FolderMaker {
 public:
  FolderMaker(RestoreScene* scene, ExtraRemover* remover, SpreadInodes* spread)
      : scene_(*scene), remover_(remover), spread_(*spread), fds_(scene->tree, scene->target.fd.Get()) {}

  OpenedFolders Run() {
    MarkTouched();
    for (uint32_t entry = 0; entry < scene_.tree.size() && !scene_.ledger.Over();) {
      const bool good = !scene_.tree[entry].IsFolder() || PrepareFolder(entry);
      entry = good ? entry + 1 : scene_.tree.End(entry);
    }
    for (const uint32_t entry : scene_.survey.blocked) Unblock(entry);
    return std::move(opened_);
  }

 private:
  EntryState& State(uint32_t entry) { return scene_.survey.states[entry]; }

  // Folders in which names come or go.
  void MarkTouched() {
    for (uint32_t entry = 1; entry < scene_.tree.size(); ++entry) {
      const EntryState state = State(entry);
      const bool changes = state == EntryState::kMissing || state == EntryState::kReplace ||
                           (state == EntryState::kAttributes && scene_.tree[entry].IsSymlink());
      if (changes) scene_.touched[scene_.tree[entry].parent] = true;
    }
    if (remover_ == nullptr) return;
    for (const ExtraEntry& extra : scene_.survey.extras) scene_.touched[extra.folder] = true;
  }

  // False when nothing can be made in it.
  bool PrepareFolder(uint32_t folder) {
    const uint32_t parent = scene_.tree[folder].parent;
    switch (State(folder)) {
      case EntryState::kMissing:
      case EntryState::kReplace:
        scene_.hands_down[folder] = scene_.hands_down[parent];
        scene_.survey.foreign[folder] = scene_.survey.foreign[parent];
        scene_.survey.known_names[folder] = true;
        return Make(folder, parent);
      case EntryState::kFailed:
        return FailAll(folder);
      default:
        return scene_.touched[folder] == 0 || LetWrite(folder);
    }
  }

  bool Make(uint32_t folder, uint32_t parent) {
    const int fd = fds_.Get(parent);
    const char* name = scene_.tree.Name(folder);
    if (fd < 0) return Failed(folder, errno);
    if (State(folder) == EntryState::kReplace) {
      const int error = Clear(folder, fd, name);
      if (error != 0) return Failed(folder, error);
    }
    if (mkdirat(fd, name, scene_.rules.CreateMode(scene_.tree[folder])) != 0) {
      // Somebody was faster. What he has put there is dealt with file by file.
      if (errno != EEXIST || fds_.Get(folder) < 0) return Failed(folder, errno);
      scene_.survey.known_names[folder] = false;
    }
    State(folder) = EntryState::kMade;
    if (parent == 0) spread_.Made(folder, fds_.Get(folder));
    return true;
  }

  // Removes the file or link that is where a folder should be. 0, errno or kChangedMeanwhile.
  int Clear(uint32_t folder, int fd, const char* name) {
    if (!scene_.guard.on()) return unlinkat(fd, name, 0) == 0 || errno == ENOENT ? 0 : errno;
    struct statx now;
    const int error = LookAtName(fd, name, &now);
    if (error != 0) return error == ENOENT ? 0 : error;
    if (scene_.guard.Changed(scene_.survey.stamps[folder], now)) return kChangedMeanwhile;
    return scene_.guard.Remove(&scene_.staging, fd, name, now);
  }

  // A folder that is there and in which something will be made.
  bool LetWrite(uint32_t folder) {
    const uint32_t seen_mode = scene_.survey.stamps[folder].mode;
    if (scene_.survey.plain[folder] != 0 && (scene_.rules.root || (seen_mode & 0300) == 0300)) {
      scene_.hands_down[folder] = (seen_mode & S_ISGID) != 0;
      return true;
    }
    const int fd = fds_.Get(folder);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) return Failed(folder, errno);
    const std::string path = StrCat("/proc/self/fd/", fd);
    scene_.hands_down[folder] =
        (status.st_mode & S_ISGID) != 0 || getxattr(path.c_str(), "system.posix_acl_default", nullptr, 0) > 0;
    if (scene_.rules.root || (status.st_mode & 0300) == 0300) return true;
    if (ChmodPathFd(fd, (status.st_mode & 07777) | 0700) != 0) return Failed(folder, errno);
    opened_.emplace_back(folder, status.st_mode & 07777);
    return true;
  }

  bool Failed(uint32_t folder, int error) {
    const int64_t below = scene_.tree.End(folder) - folder - 1;
    scene_.ledger.ErrnoProblem(folder, "cannot be made", error, below);
    return FailAll(folder);
  }

  bool FailAll(uint32_t folder) {
    for (uint32_t entry = folder; entry < scene_.tree.End(folder); ++entry)
      State(entry) = EntryState::kFailed;
    return false;
  }

  // A folder is where a file or link should be.
  void Unblock(uint32_t entry) {
    if (State(entry) != EntryState::kReplace || scene_.ledger.Over()) return;
    const uint32_t parent = scene_.tree[entry].parent;
    const int fd = fds_.Get(parent);
    const char* name = scene_.tree.Name(entry);
    const bool gone = fd >= 0 && (unlinkat(fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ||
                                  (remover_ != nullptr && remover_->Remove(fd, parent, name)));
    if (gone) {
      State(entry) = EntryState::kMissing;
    } else {
      State(entry) = EntryState::kFailed;
      scene_.ledger.Problem(entry, "a folder with something in it is in its place");
    }
  }

  RestoreScene& scene_;
  ExtraRemover* remover_;
  SpreadInodes& spread_;
  FolderFds fds_;
  OpenedFolders opened_;
};

}  // namespace

OpenedFolders MakeFolders(RestoreScene* scene, ExtraRemover* remover, SpreadInodes* spread) {
  return FolderMaker(scene, remover, spread).Run();
}

namespace {

// A folder that was there and has everything but its time, as what is in it has changed.
bool LacksOnlyTime(const RestoreScene& scene, uint32_t folder) {
  const WantedEntry& wanted = scene.tree[folder];
  const SeenStamp& stamp = scene.survey.stamps[folder];
  const EntryState state = scene.survey.states[folder];
  return wanted.IsFolder() && wanted.wanted && scene.survey.plain[folder] != 0 && wanted.xattrs == kNoEntry &&
         AttributesMatch(wanted, stamp, {.times = false, .owners = scene.rules.owners}) &&
         (state == EntryState::kAttributes || (state == EntryState::kSame && scene.touched[folder] != 0));
}

// Modes do not change in this, so that the order does not matter.
void SetTimes(RestoreScene* scene, const std::vector<uint32_t>& folders) {
  SharedNumbers numbers(folders.size(), 32);
  RunTeam(folders.size() > 64 ? scene->threads : 1, [&] {
    FolderFds fds(scene->tree, scene->target.fd.Get());
    for (size_t begin, end; numbers.Take(&begin, &end);) {
      for (size_t i = begin; i < end; ++i) {
        const uint32_t folder = folders[i];
        const int parent = fds.Get(scene->tree[folder].parent);
        const struct timespec times[2] = {{0, UTIME_OMIT}, TimeOf(scene->tree[folder].mtime_ns)};
        const char* name = folder == 0 ? "." : scene->tree.Name(folder);
        const bool set = parent >= 0 && utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) == 0;
        if (set) scene->survey.states[folder] = EntryState::kMade;
      }
    }
  });
}

}  // namespace

void FinishFolders(RestoreScene* scene, const OpenedFolders& opened) {
  std::vector<uint32_t> only_times;
  for (uint32_t folder = 0; opened.empty() && folder < scene->tree.size(); ++folder) {
    if (LacksOnlyTime(*scene, folder)) only_times.push_back(folder);
  }
  SetTimes(scene, only_times);
  for (const uint32_t folder : only_times) {
    if (scene->survey.states[folder] == EntryState::kMade) scene->touched[folder] = kFinished;
  }
  FolderFds fds(scene->tree, scene->target.fd.Get());
  auto next_opened = opened.rbegin();
  for (uint32_t folder = scene->tree.size(); folder-- > 0;) {
    const WantedEntry& wanted = scene->tree[folder];
    const bool was_opened = next_opened != opened.rend() && next_opened->first == folder;
    const uint32_t old_mode = was_opened ? (next_opened++)->second : 0;
    EntryState& state = scene->survey.states[folder];
    if (!wanted.IsFolder() || state == EntryState::kFailed || scene->touched[folder] == kFinished) continue;
    const bool made = state == EntryState::kMade;
    const bool changed =
        made || (wanted.wanted && (state == EntryState::kAttributes || scene->touched[folder]));
    if (!changed && !was_opened) continue;
    const int parent = fds.Get(wanted.parent);
    const Fd fd =
        parent < 0 ? Fd() : OpenFolderToRead(parent, folder == 0 ? "." : scene->tree.Name(folder), true);
    int error = fd ? 0 : errno;
    if (error == 0 && !changed) {
      error = fchmod(fd.Get(), old_mode) == 0 ? 0 : errno;
    } else if (error == 0) {
      const AttributesOn on = !made                       ? AttributesOn::kOld
                              : scene->hands_down[folder] ? AttributesOn::kInherited
                                                          : AttributesOn::kNew;
      error = SetAttributes(fd.Get(), wanted, scene->tree.Xattrs(folder), scene->rules, on);
      if (error == 0) state = EntryState::kMade;
    }
    if (error != 0) scene->ledger.ErrnoProblem(folder, "cannot be given its attributes", error);
  }
}

}  // namespace overcap
