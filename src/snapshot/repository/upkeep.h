// SPDX-License-Identifier: Apache-2.0
// Prune, verify and rebuild of a repository (docs/formats/snapshot.md, "Writers and prune").
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/repository/repository.h"

namespace overcap {

// Which snapshots stay. Pure.
struct KeepRules {
  int64_t last = 0, hourly = 0, daily = 0, weekly = 0, monthly = 0, yearly = 0;
  int64_t within_seconds = 0;
  bool Any() const { return last || hourly || daily || weekly || monthly || yearly || within_seconds; }
};
struct KeptSnapshot {
  NamedSnapshot snapshot;
  std::vector<std::string> reasons;  // "last", "daily"; empty: it goes
};
// Of one workspace, oldest first; periods are of local time. The newest always stays, and `within` counts
// from it, or from now when that is earlier: a clock that is ahead, here or there, removes nothing more.
std::vector<KeptSnapshot> ApplyKeepRules(const std::vector<NamedSnapshot>& snapshots, const KeepRules& rules,
                                         int64_t now_us);

struct PruneOptions {
  bool dry_run = false;
  double repack_below = 0.6;     // a pack of which less is used is copied
  int64_t wait_us = 60'000'000;  // for other writers, at most; then the rest is left for the next prune
  int64_t writer_dead_us = 1'800'000'000;
  std::vector<Digest> also_live;  // trees that are in use beside the snapshots
  // The same, asked for whenever the snapshots are listed: for trees that come and go while a prune runs. Who
  // adds such a tree lists it before his ChunkWriter goes.
  std::function<Result<std::vector<Digest>>()> list_also_live;
  std::function<void(int64_t us)> sleep;  // for tests; empty: really
  std::function<void(const std::string& step, int64_t done, int64_t total)> progress;
};
struct PruneReport {
  int64_t removed_packs = 0, removed_bytes = 0;
  int64_t copied_bytes = 0;  // what was used of packs that went
  int64_t kept_packs = 0, kept_bytes = 0;
  int64_t waiting_packs = 0;         // condemned, still to be removed: a backup is running
  std::vector<std::string> writers;  // for which these wait, "host, pid 123, since ..."
  std::string not_cleaned;           // why what killed writers left could not be removed; "": it was
};
// Removes what neither a snapshot nor captured code uses. kCorrupt, with nothing removed, when a tree cannot
// be read.
Result<PruneReport> Prune(const Repository& repository, const PruneOptions& options);

struct RepositoryVerifyOptions {
  bool read_data = false;
  std::string workspace;  // "": all
  std::function<void(int64_t done_bytes, int64_t total_bytes)> progress;
};
struct DamagedFile {
  std::string workspace;
  std::string snapshot;  // short id of the newest that has it
  std::string path;      // "": all of the snapshot
  std::string what;
  int64_t files = 1;  // how many these are
};
struct RepositoryVerifyReport {
  int64_t packs = 0, chunks = 0, snapshots = 0, bytes_read = 0;
  std::vector<std::string> damage;  // objects: one line each with its key
  std::vector<DamagedFile> files;   // what can no longer be restored because of it
  bool Sound() const { return damage.empty() && files.empty(); }
};
// Every pack is there, has its size and footer; every tree is whole and names chunks that exist. `read_data`:
// every block is read and every chunk hashed.
Result<RepositoryVerifyReport> VerifyRepository(const Repository& repository,
                                                const RepositoryVerifyOptions& options);

// Index objects made anew from the packs; `config` and its copy are put right too. How many packs they name.
Result<int64_t> RebuildIndex(const Repository& repository);

}  // namespace overcap
