// SPDX-License-Identifier: Apache-2.0
// Makes a snapshot of a tar, as if it had been unpacked and saved.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "snapshot/repository/repository.h"
#include "snapshot/tar/byte_stream.h"
#include "snapshot/tar/tar_export.h"

namespace overcap {

struct TarImportRequest {
  std::string name;  // of the tar, for messages
  std::string workspace, host, user, message, folder;
  int strip = 0;              // leading components of every name that are dropped
  bool skip_special = false;  // devices and pipes are left out and counted; else they are refused
  uint32_t uid = 0, gid = 0;  // of folders that the tar does not list
  int threads = 2;
  std::function<void(const TarProgress&)> progress;  // from the calling thread, ten a second at most
  const std::atomic<bool>* stop = nullptr;           // set: ends soon with kConflict
};

struct TarImportReport {
  NamedSnapshot snapshot;
  int64_t skipped = 0;  // devices and pipes; what stood in .overcap; what strip left nothing of
  int64_t new_bytes = 0, stored_bytes = 0;
};

// `source` is compressed or plain. All or nothing: after an error there is no snapshot (what was stored
// already goes with the next prune, or serves the next import). kCorrupt: the tar is damaged; kUsage: it has
// names or kinds of entries that no workspace may have.
Result<TarImportReport> ImportTar(const Repository& repository, ByteSource& source,
                                  const TarImportRequest& request);

}  // namespace overcap
