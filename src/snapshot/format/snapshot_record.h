// SPDX-License-Identifier: Apache-2.0
// What stands under snapshots/ and in config (docs/formats/snapshot.md). Pure; parsers take any bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "snapshot/format/chunker.h"
#include "snapshot/sha256.h"

namespace overcap {

struct SnapshotRecord {
  Digest tree;
  std::string workspace;
  int64_t time_us = 0;   // later than that of its parent, whatever the clocks say
  int64_t clock_us = 0;  // by the host's clock; 0: of an older program, and only `parent` tells its place
  std::string host;
  std::string folder;
  std::string user;
  std::string message;
  std::string parent;  // id of a snapshot, or ""
  int64_t entries = 0;
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t new_bytes = 0;
  int64_t stored_bytes = 0;
  int64_t unread = 0;
  int64_t unsteady = 0;
  std::string program;
};

std::string EncodeSnapshotRecord(const SnapshotRecord& record);
// `name` is for messages. kConflict for a newer version, kCorrupt for anything else that is none.
Result<SnapshotRecord> DecodeSnapshotRecord(std::string_view json, std::string_view name);

// When it was taken, for people and rules.
inline int64_t ClockOf(const SnapshotRecord& record) {
  return record.clock_us != 0 ? record.clock_us : record.time_us;
}

// The times of a record made at `clock_us` after the parent of time `parent_us` (0: there is none).
inline void SetTimes(SnapshotRecord* record, int64_t clock_us, int64_t parent_us) {
  record->clock_us = clock_us;
  record->time_us = std::max(clock_us, parent_us + 1);
}

struct SnapshotKey {
  std::string workspace;
  int64_t time_us = 0;
  Digest id;

  std::string Text() const;  // "snapshots/<workspace>/<time>-<id>"
};
std::optional<SnapshotKey> ParseSnapshotKey(std::string_view key);

Result<void> ValidWorkspaceName(std::string_view name);  // kUsage, naming it

struct EncryptionConfig {
  int64_t n = 0, r = 0, p = 0;
  std::string salt;    // 32 bytes
  std::string master;  // 60 bytes: nonce, sealed master key, tag
};

struct RepositoryConfig {
  std::string id;  // 32 hex digits
  ChunkSizes chunks;
  std::optional<EncryptionConfig> encryption;
};

std::string EncodeRepositoryConfig(const RepositoryConfig& config);
Result<RepositoryConfig> DecodeRepositoryConfig(std::string_view json, std::string_view location);

}  // namespace overcap
