// SPDX-License-Identifier: Apache-2.0
// Garbage collection of the store: first what keeps captured code alive, then what nothing needs any more.
#include <algorithm>
#include <iterator>
#include <unistd.h>
#include <unordered_set>

#include "base/text.h"
#include "snapshot/capture_index.h"
#include "snapshot/file_io.h"
#include "snapshot/folder_list.h"
#include "snapshot/repository/code_pin.h"
#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/upkeep.h"
#include "snapshot/spare.h"
#include "snapshot/store.h"
#include "sys/remove_tree.h"

namespace overcap {
namespace {

// One garbage collection of trees and blobs; the store is locked exclusively.
class Collection {
 public:
  Collection(const SnapshotStore& store, int64_t min_age_us)
      : store_(store), cutoff_us_(store.NowUs() - min_age_us) {}

  Result<CollectReport> Run(const std::vector<std::string>& live_trees,
                            const std::vector<std::string>& live_blobs) {
    OC_TRY_VOID(Trees(live_trees));
    OC_TRY_VOID(Blobs({live_blobs.begin(), live_blobs.end()}));
    DropIndexes();
    TrimSpares(store_);
    for (const ListedFile& file : ListFolder(store_.LocalFd(), "tmp")) {
      (void)RemoveTree(StrCat(store_.LocalFolder(), "/tmp/", file.name));
    }
    return std::move(report_);
  }

 private:
  Result<void> Trees(const std::vector<std::string>& live_trees) {
    const std::unordered_set<std::string> live(live_trees.begin(), live_trees.end());
    std::unordered_set<std::string> there;
    OC_TRY(pins, ListCodePins(store_.repository()));
    for (const CodePin& pin : pins) {
      const std::string id = pin.tree.Hex();
      there.insert(id);
      if (Keep(live.contains(id), pin.used_us, pin.size)) {
        kept_trees_.insert(pin.tree);
        continue;
      }
      DropSpares(store_, id);
      OC_TRY_VOID(Remove(CodeKey(pin.tree), pin.size));
    }
    std::copy_if(live_trees.begin(), live_trees.end(), std::back_inserter(report_.missing_trees),
                 [&](const std::string& id) { return !there.contains(id); });
    return {};
  }

  Result<void> Blobs(const std::unordered_set<std::string>& live) {
    OC_TRY(blobs, store_.repository().store().ListAll(std::string(kBlobsPrefix)));
    for (const StoredObjectInfo& blob : blobs) {
      const std::optional<Digest> id = ParseBlobKey(blob.key);
      if (!id || Keep(live.contains(id->Hex()), blob.modified_us, blob.size)) continue;
      OC_TRY_VOID(Remove(blob.key, blob.size));
    }
    return {};
  }

  // Nobody believes an index without its tree.
  void DropIndexes() {
    for (const ListedFile& file : ListFolder(store_.LocalFd(), "captures")) {
      const std::string path = "captures/" + file.name;
      const std::optional<CaptureIndex> index = DecodeIndex(ReadFileOrNothing(store_.LocalFd(), path));
      if (!index || !kept_trees_.contains(index->tree)) (void)unlinkat(store_.LocalFd(), path.c_str(), 0);
    }
  }

  // What was stored or used a moment ago may be about to get its job.
  bool Keep(bool live, int64_t used_us, int64_t size) {
    if (!live && used_us <= cutoff_us_) return false;
    ++report_.kept;
    report_.kept_bytes += size;
    return true;
  }

  Result<void> Remove(const std::string& key, int64_t size) {
    OC_TRY_VOID(store_.repository().store().Remove(key));
    ++report_.removed;
    report_.removed_bytes += size;
    return {};
  }

  const SnapshotStore& store_;
  const int64_t cutoff_us_;
  std::unordered_set<Digest> kept_trees_;
  CollectReport report_;
};

}  // namespace

Result<CollectReport> SnapshotStore::Collect(const std::vector<std::string>& live_trees,
                                             const std::vector<std::string>& live_blobs,
                                             int64_t min_age_us) const {
  CollectReport report;
  {
    OC_TRY(lock, Lock(true));
    OC_TRY(collected, Collection(*this, min_age_us).Run(live_trees, live_blobs));
    report = std::move(collected);
  }
  PruneOptions options;
  options.wait_us = options_.lock_timeout_ms * 1000;
  Result<PruneReport> pruned = Prune(*repository_, options);
  if (!pruned) {
    Error error = std::move(pruned).error();
    if (error.code == ErrorCode::kCorrupt)
      error.hint = "remove the jobs that use it, then collect again; no code was removed";
    return Fail(std::move(error));
  }
  report.removed += pruned->removed_packs;
  report.removed_bytes += pruned->removed_bytes;
  report.kept += pruned->kept_packs;
  report.kept_bytes += pruned->kept_bytes;
  report.waiting = pruned->waiting_packs;
  return report;
}

}  // namespace overcap
