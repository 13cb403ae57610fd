// SPDX-License-Identifier: Apache-2.0
// Files that are made of several parts, which arrive in any order and on any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "snapshot/restore/file_maker.h"

namespace overcap {

// Each is opened at its first part and finished after the last; of many that are begun a few stay open. May
// be used from several threads, each with a FileMaker of its own.
class LargeFiles {
 public:
  explicit LargeFiles(RestoreScene* scene) : scene_(*scene) {}

  // Announces parts, before any thread writes.
  uint32_t Add(uint32_t entry);
  void ExpectPart(uint32_t file) { ++files_[file].parts_left; }
  void EndsInHole(uint32_t file) { files_[file].ends_in_hole = true; }
  void AllKnown(uint32_t file) { files_[file].all_known = true; }
  uint32_t EntryOf(uint32_t file) const { return files_[file].made.entry; }

  // The bytes of one part. Finishes the file with its last one.
  void Write(uint32_t file, int64_t offset, std::string_view bytes, FileMaker* maker);
  // A part that cannot be had: the file fails, and is gone when its last part was told.
  void FailPart(uint32_t file, const std::string& what, FileMaker* maker);
  // Fails before any part was written, or finishes a file that has only holes.
  void Settle(uint32_t file, const std::string& what, FileMaker* maker);
  // Removes what is begun and not finished.
  void DropUnfinished(FileMaker* maker);

 private:
  static constexpr int kKeptOpen = 64;

  struct LargeFile {
    NewFile made;
    uint64_t used = 0;
    uint32_t parts_left = 0;
    uint32_t writers = 0;  // threads that use the descriptor just now
    bool all_known = false;
    bool ends_in_hole = false;
    bool begun = false;
    bool failed = false;
    bool settled = false;
  };

  int Acquire(LargeFile* file, FileMaker* maker);
  void CloseOneIdle();
  void PartDone(LargeFile* file, bool had_fd, FileMaker* maker);
  void Failed(LargeFile* file, const std::string& what);
  void End(LargeFile* file, FileMaker* maker);

  RestoreScene& scene_;
  std::mutex mutex_;  // guards what follows, while threads write
  std::vector<LargeFile> files_;
  std::vector<uint32_t> open_;  // numbers of files with a descriptor
  uint64_t ticks_ = 0;
};

}  // namespace overcap
