// SPDX-License-Identifier: Apache-2.0
// Verify, Collect and Usage of the store: what goes through all of it.
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_set>

#include "base/text.h"
#include "snapshot/capture_index.h"
#include "snapshot/file_io.h"
#include "snapshot/folder_list.h"
#include "snapshot/spare.h"
#include "snapshot/store.h"
#include "sys/remove_tree.h"

namespace overcap {
namespace {

struct ListedObject {
  Digest id;
  int64_t size = 0;
  int64_t mtime_us = 0;
};

// All objects of a kind; files that are no objects are passed over.
std::vector<ListedObject> ListObjects(const SnapshotStore& store, ObjectKind kind) {
  const std::string top = kind == ObjectKind::kTree ? "trees" : "objects";
  std::vector<ListedObject> objects;
  for (const ListedFile& folder : ListFolder(store.FolderFd(), top)) {
    for (const ListedFile& file : ListFolder(store.FolderFd(), StrCat(top, "/", folder.name))) {
      const std::optional<Digest> id = Digest::FromHex(folder.name + file.name);
      if (id) objects.push_back({*id, file.size, file.mtime_us});
    }
  }
  return objects;
}

// The id of a stored content as it is now; nullopt when it cannot be read. Adds its size to `bytes`.
std::optional<Digest> HashAgain(const SnapshotStore& store, const Digest& id, int64_t* bytes) {
  const Fd fd(openat(store.FolderFd(), ObjectPath(ObjectKind::kContent, id).c_str(),
                     O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return std::nullopt;
  return HashToEnd(fd.Get(), bytes);
}

// One garbage collection; the store is locked exclusively.
class Collection {
 public:
  Collection(const SnapshotStore& store, int64_t min_age_us)
      : store_(store), cutoff_us_(store.NowUs() - min_age_us) {}

  // A tree that nobody may miss; kCorrupt when it cannot be read, for then what it needs is not known.
  Result<void> MarkLive(const std::string& tree_id) {
    Result<std::vector<TreeEntry>> entries = store_.ReadTree(tree_id);
    if (!entries && entries.error().code == ErrorCode::kNotFound) {
      report_.missing_trees.push_back(tree_id);
      return {};
    }
    if (!entries) {
      Error error = entries.error();
      if (error.hint.empty())
        error.hint = "remove the jobs that use it, then collect again; nothing was removed";
      return Fail(std::move(error));
    }
    Mark(tree_id, *entries);
    return {};
  }

  void MarkBlob(const std::string& id) {
    if (const std::optional<Digest> digest = Digest::FromHex(id)) live_.insert(*digest);
  }

  CollectReport Run() {
    const std::vector<ListedObject> trees = ListObjects(store_, ObjectKind::kTree);
    for (const ListedObject& tree : trees) MarkYoung(tree);
    const std::vector<ListedObject> dead_trees = Dead(trees, live_trees_);
    const std::vector<ListedObject> dead = Dead(ListObjects(store_, ObjectKind::kContent), live_);
    DropIndexes();
    for (const ListedObject& tree : dead_trees) {
      DropSpares(store_, tree.id.Hex());
      Remove(ObjectKind::kTree, tree);
    }
    for (const ListedObject& object : dead) Remove(ObjectKind::kContent, object);
    TrimSpares(store_);
    for (const ListedFile& file : ListFolder(store_.FolderFd(), "tmp")) {
      (void)RemoveTree(StrCat(store_.Folder(), "/tmp/", file.name));
    }
    return std::move(report_);
  }

 private:
  void Mark(std::string_view tree_id, const std::vector<TreeEntry>& entries) {
    live_trees_.insert(*Digest::FromHex(tree_id));
    for (const TreeEntry& entry : entries) {
      if (entry.kind != EntryKind::kFolder) live_.insert(entry.content);
    }
  }

  // A tree captured a moment ago may be about to get its job.
  void MarkYoung(const ListedObject& tree) {
    if (tree.mtime_us <= cutoff_us_ || live_trees_.contains(tree.id)) return;
    const Result<std::vector<TreeEntry>> entries = store_.ReadTree(tree.id.Hex());
    if (entries) Mark(tree.id.Hex(), *entries);
  }

  std::vector<ListedObject> Dead(const std::vector<ListedObject>& all,
                                 const std::unordered_set<Digest>& live) {
    std::vector<ListedObject> dead;
    for (const ListedObject& object : all) {
      if (live.contains(object.id) || object.mtime_us > cutoff_us_) {
        ++report_.kept;
        report_.kept_bytes += object.size;
      } else {
        dead.push_back(object);
        dead_.insert(object.id);
      }
    }
    return dead;
  }

  // An index that names what goes now would make the next capture believe that it is stored.
  void DropIndexes() {
    for (const ListedFile& file : ListFolder(store_.FolderFd(), "captures")) {
      const std::string path = "captures/" + file.name;
      const std::optional<CaptureIndex> index = DecodeIndex(ReadFileOrNothing(store_.FolderFd(), path));
      if (!index || NamesDead(*index)) (void)unlinkat(store_.FolderFd(), path.c_str(), 0);
    }
  }

  bool NamesDead(const CaptureIndex& index) const {
    if (dead_.contains(index.tree)) return true;
    for (const TreeEntry& entry : index.entries) {
      if (entry.kind != EntryKind::kFolder && dead_.contains(entry.content)) return true;
    }
    return false;
  }

  void Remove(ObjectKind kind, const ListedObject& object) {
    if (unlinkat(store_.FolderFd(), ObjectPath(kind, object.id).c_str(), 0) != 0) return;
    ++report_.removed;
    report_.removed_bytes += object.size;
  }

  const SnapshotStore& store_;
  const int64_t cutoff_us_;
  std::unordered_set<Digest> live_trees_;
  std::unordered_set<Digest> live_;
  std::unordered_set<Digest> dead_;
  CollectReport report_;
};

}  // namespace

Result<VerifyReport> SnapshotStore::Verify(std::string_view tree_id) const {
  OC_TRY(lock, LockShared());
  OC_TRY(entries, ReadTreeOrDrop(tree_id));
  VerifyReport report;
  report.objects = 1;
  std::unordered_set<Digest> good;
  for (const TreeEntry& entry : entries) {
    if (entry.kind == EntryKind::kFolder || good.contains(entry.content)) continue;
    int64_t bytes = 0;
    const std::optional<Digest> now = HashAgain(*this, entry.content, &bytes);
    report.bytes += bytes;
    ++report.objects;
    if (now == entry.content && bytes == entry.size) {
      good.insert(entry.content);
      continue;
    }
    report.damage.push_back(StrCat("'", entry.path, "': object '", entry.content.Hex(), "' ",
                                   now ? "has another content" : "is missing or cannot be read"));
    DropDamaged(ObjectKind::kContent, entry.content);
  }
  return report;
}

Result<CollectReport> SnapshotStore::Collect(const std::vector<std::string>& live_trees,
                                             const std::vector<std::string>& live_blobs,
                                             int64_t min_age_us) const {
  OC_TRY(lock, Lock(true));
  Collection collection(*this, min_age_us);
  for (const std::string& tree : live_trees) OC_TRY_VOID(collection.MarkLive(tree));
  for (const std::string& blob : live_blobs) collection.MarkBlob(blob);
  return collection.Run();
}

Result<StoreUsage> SnapshotStore::Usage() const {
  OC_TRY(lock, LockShared());
  StoreUsage usage;
  for (const ListedObject& object : ListObjects(*this, ObjectKind::kContent)) {
    ++usage.objects;
    usage.object_bytes += object.size;
  }
  for (const ListedObject& tree : ListObjects(*this, ObjectKind::kTree)) {
    ++usage.trees;
    usage.tree_bytes += tree.size;
  }
  usage.spares = static_cast<int64_t>(ListFolder(fd_.Get(), SpareFolder()).size());
  return usage;
}

}  // namespace overcap
