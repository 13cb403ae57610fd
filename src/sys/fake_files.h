// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>

#include "sys/fake_file_tree.h"
#include "sys/files.h"
#include "sys/random.h"

namespace overcap {

enum class CrashKind {
  kProcess,   // the program dies: everything written stays
  kPowerCut,  // the machine dies: of what was not synced, anything may be lost
};

// Files in memory that can crash and run full. After a power cut, of each file's unsynced tail a random part
// (from its beginning) survives, and each unsynced change of a name is kept or lost by itself. The same seed
// and the same calls give the same outcome.
class FakeFiles : public Files {
 public:
  explicit FakeFiles(uint64_t seed = 1) : random_(seed) {}

  // Files opened before stay usable for nothing: each of their methods fails. Ends DieAfter().
  void Crash(CrashKind kind);

  // The next `count` writes (Append, WriteAtomic, CreateExclusive, a file made by OpenAppend) fail with
  // ENOSPC; an Append leaves a random part.
  void FailWrites(int count) { failing_writes_ = count; }
  // So many bytes can still be written, then ENOSPC; nullopt: no limit.
  void SetFreeBytes(std::optional<int64_t> bytes) { free_bytes_ = bytes; }
  void RefuseReserves() { can_reserve_ = false; }        // as file systems that cannot set space aside
  void FailSyncs(int count) { failing_syncs_ = count; }  // the next `count` Sync and SyncFolder fail with EIO
  // `changes` more changes are done; all later ones fail and do nothing, as if the program had died there,
  // until Crash().
  void DieAfter(int changes) { changes_left_ = changes; }
  bool Dead() const { return changes_left_ && *changes_left_ <= 0; }
  int64_t Changes() const { return changes_; }  // so far: what DieAfter can aim at

  Result<std::string> Read(const std::string& path) const override;
  Result<std::string> ReadRange(const std::string& path, int64_t offset, int64_t limit) const override;
  Result<std::unique_ptr<AppendFile>> OpenAppend(const std::string& path) override;
  Result<void> WriteAtomic(const std::string& path, std::string_view data, bool durable) override;
  Result<void> CreateExclusive(const std::string& path, std::string_view data) override;
  Result<void> MakeFolders(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> SyncFolder(const std::string& path) override;
  Result<void> Remove(const std::string& path) override;
  Result<void> RemoveTree(const std::string& path) override;
  bool Exists(const std::string& path) const override;
  Result<std::vector<std::string>> List(const std::string& path) const override;

 private:
  friend class FakeAppendFile;

  int CountChange();                               // 0, or the errno of a program that is dead
  int TakeSpace(int64_t bytes, int64_t* granted);  // 0 or ENOSPC; `granted`: what still fits
  int TakeSync();                                  // 0 or EIO
  // A new file with this content, not yet named.
  Result<std::shared_ptr<FakeNode>> NewFile(const std::string& path, std::string_view data);

  FakeFileTree tree_;
  SeededRandom random_;
  int64_t epoch_ = 0;  // counts crashes
  int64_t changes_ = 0;
  int failing_writes_ = 0;
  int failing_syncs_ = 0;
  bool can_reserve_ = true;
  std::optional<int64_t> free_bytes_;
  std::optional<int> changes_left_;
};

}  // namespace overcap
