// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/note_seen.h"

#include <atomic>
#include <deque>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>

#include "snapshot/backup/seen.h"
#include "snapshot/restore/folder_names.h"
#include "snapshot/restore/thread_team.h"

namespace overcap {
namespace {

class SeenNoter {
 public:
  SeenNoter(RestoreScene* scene, const NoteSeenRequest& request)
      : scene_(*scene), request_(request), noted_(scene->tree.size()), linked_(scene->tree.size()) {
    for (const FoundLink& link : scene->survey.links) linked_[link.entry] = true;
  }

  Result<void> Run() {
    LookAtMade();
    SeenEntry root = NoteOf(0);
    // All contents are those of the tree; but a backup must not think that the folder is exactly that.
    if (exact_) root.flags |= kSeenExact;
    if (!exact_) root.stamp.ctime_ns = 0;
    SeenWriter writer(request_.began_ns, request_.repository_id, scene_.target.path, root);
    writer.Reserve(scene_.tree.size());
    for (std::deque<uint32_t> folders = {0}; !folders.empty(); folders.pop_front())
      Add(folders.front(), &folders, &writer);
    return writer.Finish(request_.tree, request_.file);
  }

 private:
  void LookAtMade() {
    SharedNumbers numbers(scene_.tree.size(), 256);
    RunTeam(scene_.threads, [&] {
      FolderFds fds(scene_.tree, scene_.target.fd.Get());
      for (size_t begin, end; numbers.Take(&begin, &end);) {
        for (size_t entry = begin; entry < end; ++entry) Look(static_cast<uint32_t>(entry), &fds);
      }
    });
  }

  void Look(uint32_t entry, FolderFds* fds) {
    const EntryState state = scene_.survey.states[entry];
    const WantedEntry& wanted = scene_.tree[entry];
    SeenStamp& stamp = scene_.survey.stamps[entry];
    const bool may_be_changed = state == EntryState::kMade || wanted.has_links || wanted.IsHardLink() ||
                                linked_[entry] != 0 || scene_.touched[entry] != 0;
    if (may_be_changed && state != EntryState::kFailed) {
      noted_[entry] = LookAgain(entry, fds) && IsAsMade(wanted, stamp);
    } else if (state == EntryState::kSame || state == EntryState::kAttributes) {
      noted_[entry] = true;
      // It was right when it was looked at, but may have changed since without the stamp telling.
      if (RacilySeen(stamp, request_.survey_began_ns)) stamp.ctime_ns = 0;
    }
    // Its new time hides what came into it meanwhile, when the restore was long or its clock is another one.
    const bool changed = scene_.touched[entry] != 0 || state == EntryState::kMade;
    if (wanted.IsFolder() && changed && scene_.survey.known_names[entry] != 0 && HasMore(entry, fds))
      scene_.survey.known_names[entry] = 0;
    if (wanted.IsFolder() && scene_.survey.known_names[entry] == 0) stamp.ctime_ns = 0;
    const bool as_the_tree =
        noted_[entry] != 0 && AttributesMatch(wanted, stamp, {.times = true, .owners = true});
    if (!as_the_tree) exact_.store(false, std::memory_order_relaxed);
  }

  // Whether something came into a folder while this restore changed its times, or that cannot be told.
  bool HasMore(uint32_t folder, FolderFds* fds) {
    const int parent = fds->Get(scene_.tree[folder].parent);
    const char* name = folder == 0 ? "." : scene_.tree.Name(folder);
    const Fd fd = parent < 0 ? Fd() : OpenFolderToRead(parent, name, false);
    std::vector<ListedName> names;
    if (!fd || !ListNames(fd.Get(), false, &names)) return true;
    uint32_t child = scene_.tree.First(folder);
    for (const ListedName& listed : names) {
      if (folder == 0 && listed.name == request_.keep_name) continue;
      while (child < scene_.tree.End(folder) && scene_.tree.Name(child) < std::string_view(listed.name))
        child = scene_.tree.Next(child);
      if (child == scene_.tree.End(folder) || scene_.tree.Name(child) != listed.name) return true;
    }
    return false;
  }

  bool LookAgain(uint32_t entry, FolderFds* fds) {
    const int fd = fds->Get(scene_.tree[entry].parent);
    struct statx status;
    const char* name = entry == 0 ? "" : scene_.tree.Name(entry);
    constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH;
    if (fd < 0 || statx(fd, name, kFlags, STATX_BASIC_STATS, &status) != 0) return false;
    const unsigned type = status.stx_mode & S_IFMT;
    const WantedEntry& wanted = scene_.tree[entry];
    scene_.survey.stamps[entry] = SeenStamp::Of(status);
    return type == (wanted.IsFolder() ? S_IFDIR : wanted.IsSymlink() ? S_IFLNK : S_IFREG);
  }

  // Whoever has changed it since has changed its time too.
  static bool IsAsMade(const WantedEntry& wanted, const SeenStamp& stamp) {
    if (wanted.IsFolder()) return true;
    return stamp.mtime_ns == wanted.mtime_ns && (wanted.IsSymlink() || stamp.size == wanted.size);
  }

  void Add(uint32_t folder, std::deque<uint32_t>* folders, SeenWriter* writer) {
    uint64_t count = 0;
    for (uint32_t child = scene_.tree.First(folder); child < scene_.tree.End(folder);
         child = scene_.tree.Next(child)) {
      count += noted_[child];
    }
    writer->BeginFolder(count);
    for (uint32_t child = scene_.tree.First(folder); child < scene_.tree.End(folder);
         child = scene_.tree.Next(child)) {
      if (noted_[child] == 0) continue;
      writer->Add(NoteOf(child));
      if (scene_.tree[child].IsFolder()) folders->push_back(child);
    }
  }

  SeenEntry NoteOf(uint32_t entry) {
    const WantedEntry& wanted = scene_.tree[entry];
    SeenEntry note;
    note.name = scene_.tree.Name(entry);
    note.type = wanted.IsHardLink() ? SnapshotEntryType::kFile : wanted.type;
    note.stamp = scene_.survey.stamps[entry];
    if (wanted.unsteady) note.flags |= kSeenUnsteady;
    if (wanted.has_links || wanted.IsHardLink()) note.flags |= kSeenHardLink;
    if (!wanted.IsFolder() && !wanted.IsSymlink()) note.content = wanted.Content();
    if (wanted.IsSymlink()) note.target = scene_.tree.Target(entry);
    if (wanted.xattrs != kNoEntry) {
      xattrs_ = EncodeXattrs(RestoredXattrs(scene_.tree.Xattrs(entry), scene_.rules));
      note.xattrs = xattrs_;
    }
    return note;
  }

  RestoreScene& scene_;
  const NoteSeenRequest& request_;
  std::vector<uint8_t> noted_;
  std::vector<uint8_t> linked_;  // had other names, which may be gone
  std::atomic<bool> exact_ = true;
  std::string xattrs_;
};

}  // namespace

Result<void> NoteSeen(RestoreScene* scene, const NoteSeenRequest& request) {
  return SeenNoter(scene, request).Run();
}

}  // namespace overcap
