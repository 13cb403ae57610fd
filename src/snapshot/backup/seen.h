// SPDX-License-Identifier: Apache-2.0
// The local cache of what a folder looked like (docs/formats/snapshot.md, "Local knowledge").
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/format/entry.h"

namespace overcap {

// What stat says of an entry.
struct SeenStamp {
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  uint32_t mode = 0;  // 12 bits
  uint32_t uid = 0;
  uint32_t gid = 0;

  bool operator==(const SeenStamp&) const = default;
};

struct SeenEntry {
  std::string_view name;  // into Seen's own bytes, or the builder's
  SnapshotEntryType type = SnapshotEntryType::kFile;
  SeenStamp stamp;
  uint32_t flags = 0;
  FileContent content;
  std::string_view target;
  std::string_view xattrs;  // as encoded, "" without
  uint32_t folder = 0;      // folders: its number
};
constexpr uint32_t kSeenHasXattrs = 1, kSeenUnsteady = 2, kSeenHardLink = 4, kSeenNotInTree = 8;

// One whole cache, read. Cheap for 60,000 entries (a few ms), fine for millions.
class Seen {
 public:
  // nullopt when it is missing, damaged or of another folder or repository.
  static std::optional<Seen> Load(const std::string& file, std::string_view repository_id,
                                  std::string_view folder);

  Seen();
  ~Seen();
  Seen(Seen&&) noexcept;
  Seen& operator=(Seen&&) noexcept;

  int64_t began_ns() const;
  const Digest& tree() const;
  const SeenStamp& root_stamp() const;
  uint32_t folder_count() const;
  // The children of a folder by name.
  std::vector<SeenEntry> Children(uint32_t folder) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Writes one: Folder() breadth first, each with all its children.
class SeenWriter {
 public:
  SeenWriter(int64_t began_ns, std::string_view repository_id, std::string_view folder,
             const SeenStamp& root);
  ~SeenWriter();
  void Folder(const std::vector<SeenEntry>& children);
  // Atomic; not durable: it is a cache.
  Result<void> Finish(const Digest& tree, const std::string& file);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether an entry with this stamp may have changed after a walk that began at `began_ns` without the stamp
// telling.
bool RacilySeen(const SeenStamp& stamp, int64_t began_ns);

}  // namespace overcap
