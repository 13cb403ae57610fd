// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "snapshot/store.h"
#include "sys/fd.h"

namespace overcap {

struct StoredObject {
  Digest id;
  int64_t size = 0;
  bool is_new = false;  // the store did not have it
};

// Objects on their way into the store: first all are written under temporary names, then Commit makes them
// durable at once and gives them their names, in the order in which they were added. What was not committed
// is removed. The Add functions may be called from several threads. The caller holds the store's lock.
class ObjectBatch {
 public:
  explicit ObjectBatch(const SnapshotStore& store);
  ~ObjectBatch();
  ObjectBatch(const ObjectBatch&) = delete;
  ObjectBatch& operator=(const ObjectBatch&) = delete;

  Result<StoredObject> AddBytes(std::string_view bytes, ObjectKind kind);
  // All of an open file, as it is read: the id is that of the bytes stored, also when the file changes
  // meanwhile. `path` is for messages, `on_bytes` is told of each piece.
  Result<StoredObject> AddFile(int fd, int64_t expected_size, const std::string& path,
                               const std::function<void(int64_t)>& on_bytes);
  Result<void> Commit();

 private:
  struct Staged {
    std::string temporary;
    std::string place;
  };
  struct Temporary {
    std::string path;
    Fd fd;
  };

  Result<Temporary> MakeTemporary();
  Result<StoredObject> AddLargeFile(int fd, const std::string& path,
                                    const std::function<void(int64_t)>& on_bytes);
  StoredObject Stage(const Digest& id, int64_t size, ObjectKind kind, const std::string& temporary);
  bool Known(const Digest& id, int64_t size, ObjectKind kind);
  Result<void> SyncFiles() const;
  Result<void> SyncFolders(const std::vector<std::string>& folders) const;
  Result<void> SyncAll() const;
  Result<void> Place(const Staged& staged, std::vector<std::string>* folders) const;
  tl::unexpected<Error> WriteError() const;

  const SnapshotStore& store_;
  const std::string prefix_;  // of the temporary names
  std::atomic<int64_t> count_ = 0;
  std::mutex mutex_;  // guards what follows
  std::vector<Staged> staged_;
  std::unordered_set<std::string> places_;  // of staged_
};

}  // namespace overcap
