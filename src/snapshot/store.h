// SPDX-License-Identifier: Apache-2.0
// The content-addressed store of one user (docs/formats/code-store.md). Captures go in through
// snapshot/capture.h and come out through snapshot/materialise.h. Any number of processes may use one store
// at the same time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/sha256.h"
#include "snapshot/tree.h"
#include "sys/clock.h"
#include "sys/fd.h"

namespace overcap {

enum class ObjectKind { kContent, kTree };

struct StoreOptions {
  bool durable = true;           // false: nothing is synced, a power cut may lose or damage what was stored
  const Clock* clock = nullptr;  // nullptr: the machine's own
  int64_t lock_timeout_ms = 30'000;  // how long to wait for a garbage collection, or it for others
};

struct VerifyReport {
  int64_t objects = 0;  // that were read, the tree among them
  int64_t bytes = 0;
  std::vector<std::string> damage;  // one line each, with path and object; empty: all is well
};

struct CollectReport {
  int64_t removed = 0;  // objects and trees
  int64_t removed_bytes = 0;
  int64_t kept = 0;
  int64_t kept_bytes = 0;
  std::vector<std::string> missing_trees;  // ids that were said to be live but are not there
};

struct StoreUsage {
  int64_t objects = 0;
  int64_t object_bytes = 0;
  int64_t trees = 0;
  int64_t tree_bytes = 0;
  int64_t spares = 0;  // complete copies made ahead
};

class SnapshotStore {
 public:
  // `folder` is <root>/store; made with its folders if missing.
  static Result<SnapshotStore> Open(const std::string& folder, StoreOptions options = {});

  // Stores bytes under their id, durable when it returns. Costs a look when they are there already.
  Result<std::string> PutBlob(std::string_view bytes) const;
  // The bytes, checked against the id. kNotFound, or kCorrupt when they are not what was stored: then they
  // are removed, so that PutBlob stores them again.
  Result<std::string> GetBlob(std::string_view id) const;

  // The entries of a tree, checked. kNotFound or kCorrupt like GetBlob.
  Result<std::vector<TreeEntry>> ReadTree(std::string_view id) const;

  // Reads the tree and all that it names again. What is damaged is removed, so that the next capture stores
  // it again. kNotFound and kCorrupt only for the tree itself.
  Result<VerifyReport> Verify(std::string_view tree_id) const;

  // Removes objects and trees that no live one reaches and that were neither written nor used in the last
  // `min_age_us`, and what crashes have left behind. kUnavailable when captures keep it from the lock;
  // kCorrupt, with nothing removed, when a live tree cannot be read.
  Result<CollectReport> Collect(const std::vector<std::string>& live_trees,
                                const std::vector<std::string>& live_blobs, int64_t min_age_us) const;

  Result<StoreUsage> Usage() const;

  // For the other parts of src/snapshot:

  const std::string& Folder() const { return folder_; }
  int FolderFd() const { return fd_.Get(); }
  bool Durable() const { return options_.durable; }
  int64_t NowUs() const { return options_.clock->WallUs(); }

  // Held until the Fd goes. kUnavailable after the time-out.
  Result<Fd> LockShared() const { return Lock(false); }
  // Whether it is there with this size.
  bool Has(ObjectKind kind, const Digest& id, int64_t size) const;
  // Marks it as used now, so that Collect with a minimum age spares it.
  void Touch(ObjectKind kind, const Digest& id) const;
  // ReadTree that also drops a damaged tree.
  Result<std::vector<TreeEntry>> ReadTreeOrDrop(std::string_view id) const;
  // For who found it missing or damaged: removes it if it is not what its name says, and the indexes of all
  // captures. So the next capture looks at all its files and stores again what is gone.
  void DropDamaged(ObjectKind kind, const Digest& id) const;

 private:
  SnapshotStore(std::string folder, Fd fd, StoreOptions options)
      : folder_(std::move(folder)), fd_(std::move(fd)), options_(options) {}

  Result<Fd> Lock(bool exclusive) const;
  Result<std::string> Get(ObjectKind kind, std::string_view id) const;

  std::string folder_;
  Fd fd_;
  StoreOptions options_;
};

// A fresh name below the store's folder: "tmp/<what>-<random>".
std::string TemporaryName(std::string_view what);

// "objects/ab/cdef…" or "trees/ab/cdef…", below the store's folder.
std::string ObjectPath(ObjectKind kind, const Digest& id);

}  // namespace overcap
