// SPDX-License-Identifier: Apache-2.0
// Looks into snapshots: what is in them, what is in a file, what differs. Reads only the pages that matter.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "snapshot/format/entry.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/repository.h"

namespace overcap {

class SnapshotContents {
 public:
  // The repository must live longer.
  static Result<SnapshotContents> Open(const Repository& repository);

  // kNotFound, naming the path and the snapshot. "" is the folder itself.
  Result<SnapshotEntry> Find(const NamedSnapshot& snapshot, const std::string& path);

  using OnEntry = std::function<Result<void>(const SnapshotEntry& entry)>;
  // A file: itself. A folder: what is in it, not itself; all that is below with `deep`.
  Result<void> List(const NamedSnapshot& snapshot, const std::string& path, bool deep,
                    const OnEntry& on_entry);

  // The bytes of a file, piece by piece. kUsage for what has none.
  Result<void> Cat(const NamedSnapshot& snapshot, const std::string& path,
                   const std::function<Result<void>(std::string_view bytes)>& on_bytes);

  struct Change {
    std::string path;
    char what = '~';  // '+', '-', '~': as FolderDifference
    const SnapshotEntry* before = nullptr;
    const SnapshotEntry* after = nullptr;
  };
  // In order; folders in which only the time differs are left out.
  Result<void> Diff(const NamedSnapshot& before, const NamedSnapshot& after,
                    const std::function<Result<void>(const Change& change)>& on_change);

 private:
  SnapshotContents() = default;
  GetMeta Getter();

  std::unique_ptr<ChunkIndex> index_;
  std::unique_ptr<ChunkReader> reader_;
};

// A path that a user typed, relative to the workspace's folder: what is typed is relative to `current` when
// that is inside of the folder, else to the folder itself. Absolute ones must be inside. "": all. kUsage when
// it leads out of the folder.
Result<std::string> PathInWorkspace(const std::string& typed, const std::string& folder,
                                    const std::string& current);

}  // namespace overcap
