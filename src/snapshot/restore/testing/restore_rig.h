// SPDX-License-Identifier: Apache-2.0
// A folder, a repository in memory and a place to restore to, for the tests of src/snapshot/restore.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "snapshot/backup/backup.h"
#include "snapshot/format/entry.h"
#include "snapshot/repository/repository.h"
#include "snapshot/restore/restore.h"
#include "snapshot/testing/compare_trees.h"
#include "snapshot/testing/sample_folder.h"
#include "stores/mem/mem_store.h"
#include "sys/testing/temp_folder.h"

namespace overcap {

class RestoreRig {
 public:
  // `in_memory`: where there is a file system in memory; some others are slow to make many files anew.
  explicit RestoreRig(bool in_memory = false);
  ~RestoreRig();

  std::string Source(const std::string& name = "") const;  // a path in the folder that is backed up
  std::string Target(const std::string& name = "") const;
  const TempFolder& temp() const { return *temp_; }
  Repository& repository() { return *repository_; }
  MemStore& store() { return *store_; }
  OffsetClock& clock() { return clock_; }

  // Backs the source up; what it is called in a restore. Fails the test when a file was left out.
  Digest Save();
  // The repository's tree of these entries, whatever they say; the root is added.
  Digest PutTree(const std::vector<SnapshotEntry>& entries);
  // Stores a chunk: what an entry of PutTree can name.
  FileContent PutContent(std::string_view bytes);

  RestoreRequest Request(const Digest& tree, bool with_seen = false) const;
  RestoreReport Restored(const RestoreRequest& request);
  // Lines of CompareTrees(source, target).
  std::vector<std::string> Differences() const;

 private:
  std::unique_ptr<TempFolder> temp_;
  OffsetClock clock_;
  std::shared_ptr<MemStore> store_;
  std::unique_ptr<Repository> repository_;
};

// Mode, then mtime in seconds and nanoseconds; links are not followed.
void SetModeAndTime(const std::string& path, unsigned mode, int64_t seconds, int64_t nanoseconds);

// Bytes that do not compress, the same for the same seed.
std::string NoiseOf(size_t size, uint64_t seed);

}  // namespace overcap
