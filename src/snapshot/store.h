// SPDX-License-Identifier: Apache-2.0
// The repository of a state root and what stands beside it: captured code and environments go in through
// snapshot/capture.h and PutBlob, code comes out through snapshot/materialise.h (docs/formats/snapshot.md,
// "Captured code"). Any number of processes may use one store at the same time, and workspaces may be backed
// up to the same repository.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/repository.h"
#include "snapshot/sha256.h"
#include "sys/clock.h"
#include "sys/fd.h"

namespace overcap {

struct StoreOptions {
  const Clock* clock = nullptr;      // of ages and captures; nullptr: the machine's own
  int64_t lock_timeout_ms = 30'000;  // how long to wait for a garbage collection, or it for captures
  // Where the repository is; nullptr: in the folder, which otherwise keeps only what is of this machine.
  std::shared_ptr<Store> objects = nullptr;
};

struct CollectReport {
  int64_t removed = 0;  // trees, environments and packs
  int64_t removed_bytes = 0;
  int64_t kept = 0;
  int64_t kept_bytes = 0;
  int64_t waiting = 0;  // packs that will go when captures or backups that run now have ended
  std::vector<std::string> missing_trees;  // ids that were said to be live but are not there
};

class SnapshotStore {
 public:
  // `folder` is <root>/store; made with its repository if missing. With objects of its own it must be there.
  static Result<SnapshotStore> Open(const std::string& folder, StoreOptions options = {});

  // Stores bytes under their id, durable when it returns. Costs a look when they are there already.
  Result<std::string> PutBlob(std::string_view bytes) const;
  // The bytes, checked against the id. kNotFound, or kCorrupt when they are not what was stored: then they
  // are removed, so that PutBlob stores them again.
  Result<std::string> GetBlob(std::string_view id) const;

  // Removes trees and blobs that are not live and were neither stored nor used in the last `min_age_us`,
  // what crashes have left behind, then all packs that neither code nor any snapshot needs (Prune of
  // snapshot/repository/upkeep.h). kUnavailable when captures keep it from the lock; kCorrupt, with no pack
  // removed, when a live tree cannot be read.
  Result<CollectReport> Collect(const std::vector<std::string>& live_trees,
                                const std::vector<std::string>& live_blobs, int64_t min_age_us) const;

  // For the other parts of src/snapshot:

  const std::string& Folder() const { return folder_; }
  const Repository& repository() const { return *repository_; }
  int64_t NowUs() const { return options_.clock->WallUs(); }
  // What is of this file system alone: lock, captures/, spare/, tmp/.
  std::string LocalFolder() const;
  int LocalFd() const { return local_.Get(); }

  // Held until the Fd goes: no tree or blob is removed meanwhile. kUnavailable after the time-out.
  Result<Fd> LockShared() const { return Lock(false); }
  // Whether the tree was captured and is kept.
  bool HasTree(const Digest& tree) const;
  // Marks it as used now, so that Collect with a minimum age spares it.
  void TouchTree(const Digest& tree) const;
  // For who found something of a tree missing or damaged: the next capture of any folder looks at all its
  // files and stores again what is gone. `packs` are those with the damage.
  void DropDamaged(const std::vector<Digest>& packs) const;

 private:
  SnapshotStore(std::string folder, Fd local, std::shared_ptr<const Repository> repository,
                StoreOptions options)
      : folder_(std::move(folder)),
        local_(std::move(local)),
        repository_(std::move(repository)),
        options_(std::move(options)) {}

  Result<Fd> Lock(bool exclusive) const;
  void Touch(const std::string& key) const;

  std::string folder_;
  Fd local_;
  std::shared_ptr<const Repository> repository_;
  StoreOptions options_;
};

// A fresh name below the local folder: "tmp/<what>-<random>".
std::string TemporaryName(std::string_view what);

// kUsage unless `id` is 64 hex digits. `what` is "tree" or "environment".
Result<Digest> ParseStoredId(std::string_view id, std::string_view what);

}  // namespace overcap
