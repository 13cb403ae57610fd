// SPDX-License-Identifier: Apache-2.0
// A repository of snapshots in a store (docs/formats/snapshot.md). Any number of processes on any number of
// hosts may use one at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/format/seal.h"
#include "snapshot/format/snapshot_record.h"
#include "stores/store.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap {

struct NamedSnapshot {
  SnapshotKey key;
  SnapshotRecord record;

  std::string Id() const { return key.id.Hex(); }
  std::string ShortId() const { return Id().substr(0, 10); }
};

class Repository {
 public:
  struct Parts {
    std::shared_ptr<Store> store;
    const Clock* clock = nullptr;  // nullptr: the machine's own
    Random* random = nullptr;      // nullptr: the kernel's
    bool plain_blocks = false;     // new chunks of data each get a block of their own, not compressed
  };

  // Makes one where none is: kConflict when there is (of two creators at once one wins). `secret` empty: not
  // encrypted.
  static Result<Repository> Create(Parts parts, std::string_view secret = {}, ChunkSizes chunks = {},
                                   ScryptCost cost = {});
  // kNotFound when there is none, kDenied for a wrong or missing secret, kUsage for a needless one, kConflict
  // for a newer version. When `config` is lost or damaged its copy is used.
  static Result<Repository> Open(Parts parts, std::string_view secret = {});

  Store& store() const { return *parts_.store; }
  const Clock& clock() const { return *parts_.clock; }
  Random& random() const { return *parts_.random; }
  bool plain_blocks() const { return parts_.plain_blocks; }
  const RepositoryConfig& config() const { return config_; }
  const std::optional<SecretKey>& master() const { return master_; }

  // What is wrong with `config` and its copy, one line each; `mend`: they are put right too.
  Result<std::vector<std::string>> CheckConfig(bool mend) const;

  // Parents before children, else by time; all of one workspace, or of all workspaces when `workspace` is
  // empty. Damaged records are left out and named in `damage` (may be null), as are those of a newer version.
  Result<std::vector<NamedSnapshot>> Snapshots(std::string_view workspace,
                                               std::vector<std::string>* damage = nullptr) const;
  // By id or the beginning of one (at least 4 digits), "latest" (which is no snapshot's parent; of several
  // the one of the latest time), or "latest~2". kNotFound; kUsage when several begin so; kCorrupt when it is
  // damaged: the caller chooses another.
  Result<NamedSnapshot> Find(std::string_view workspace, std::string_view name) const;
  Result<NamedSnapshot> PutSnapshot(const SnapshotRecord& record) const;
  Result<void> Forget(const NamedSnapshot& snapshot) const;  // only the snapshot; prune frees the space

  // Objects that are named by what they hold; sealed when the repository is. `kind` is "index" or
  // "snapshots". The object's key is `key_begin` ("index/") and the id that comes back, the SHA-256 of the
  // stored bytes.
  Result<Digest> PutSealed(std::string_view kind, const std::string& key_begin, std::string_view plain) const;
  // kCorrupt when the bytes are not those that the key names.
  Result<std::string> GetSealed(std::string_view kind, const std::string& key) const;

 private:
  Repository(Parts parts, RepositoryConfig config, std::optional<SecretKey> master)
      : parts_(std::move(parts)), config_(std::move(config)), master_(std::move(master)) {}

  Parts parts_;
  RepositoryConfig config_;
  std::optional<SecretKey> master_;
};

}  // namespace overcap
