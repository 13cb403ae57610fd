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
#include "snapshot/format/bytes.h"
#include "snapshot/format/entry.h"

struct statx;

namespace overcap {

// What stat says of an entry.
struct SeenStamp {
  uint64_t inode = 0;
  int64_t size = 0;  // 0 for folders
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  uint32_t mode = 0;  // 12 bits; 0777 for symbolic links
  uint32_t uid = 0;
  uint32_t gid = 0;

  bool operator==(const SeenStamp&) const = default;
  // Of STATX_BASIC_STATS.
  static SeenStamp Of(const struct statx& status);
};

struct SeenEntry {
  std::string_view name;  // into Seen's own bytes, or the builder's
  SnapshotEntryType type = SnapshotEntryType::kFile;
  SeenStamp stamp;
  uint32_t flags = 0;
  FileContent content;
  std::string_view target;  // symbolic links
  std::string_view xattrs;  // as encoded (EncodeXattrs), "" without
  uint32_t folder = 0;      // folders: its number; a writer numbers them itself

  bool IsFolder() const { return type == SnapshotEntryType::kFolder; }
  bool IsFile() const { return type == SnapshotEntryType::kFile || type == SnapshotEntryType::kHardLink; }
};
constexpr uint32_t kSeenHasXattrs = 1, kSeenUnsteady = 2, kSeenHardLink = 4, kSeenNotInTree = 8;
// Of the root, when its stamp has no ctime: all entries are exactly as the tree says nevertheless.
constexpr uint32_t kSeenExact = 16;

// The children of one folder, one after the other, by name, without copies.
class SeenCursor {
 public:
  SeenCursor() = default;  // of a folder without children
  // False after the last.
  bool Next(SeenEntry* entry);

 private:
  friend class Seen;
  ByteReader bytes_{std::string_view()};
  uint64_t left_ = 0;
  uint32_t next_folder_ = 0;
  uint32_t folder_count_ = 0;
};

// One whole cache, read. Cheap for 60,000 entries (a few ms), fine for millions. May be read from several
// threads.
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
  const SeenEntry& root() const;  // its name is "", its number 0
  const SeenStamp& root_stamp() const { return root().stamp; }
  uint32_t folder_count() const;
  SeenCursor Open(uint32_t folder) const;
  // The same at once.
  std::vector<SeenEntry> Children(uint32_t folder) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Writes one: the folders breadth first, the root's children first, each with all its children by name.
class SeenWriter {
 public:
  SeenWriter(int64_t began_ns, std::string_view repository_id, std::string_view folder,
             const SeenEntry& root);
  ~SeenWriter();
  // About so many entries will come.
  void Reserve(size_t entries);
  void Folder(const std::vector<SeenEntry>& children);
  // The same without a vector: `count` calls of Add follow.
  void BeginFolder(uint64_t count);
  void Add(const SeenEntry& entry);
  // Atomic; not durable: it is a cache.
  Result<void> Finish(const Digest& tree, const std::string& file);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "" for none, else as in trees: varint number; per attribute bytes name, bytes value.
std::string EncodeXattrs(const std::vector<ExtendedAttribute>& xattrs);
// nullopt when they are damaged.
std::optional<std::vector<ExtendedAttribute>> DecodeXattrs(std::string_view encoded);

// Whether an entry with this stamp may have changed after a walk that began at `began_ns` without the stamp
// telling.
bool RacilySeen(const SeenStamp& stamp, int64_t began_ns);

}  // namespace overcap
