// SPDX-License-Identifier: Apache-2.0
// A snapshot as a tar, for every program that reads tars.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "snapshot/repository/repository.h"
#include "snapshot/tar/byte_stream.h"
#include "snapshot/tar/tar_codec.h"

namespace overcap {

struct TarProgress {
  int64_t files_done = 0, files_total = 0;  // totals: 0 when they are not known
  int64_t bytes_done = 0, bytes_total = 0;
};

struct TarExportRequest {
  Digest tree;
  TarCodec codec = TarCodec::kPlain;
  int threads = 2;                                   // for compressing
  std::function<void(const TarProgress&)> progress;  // from the calling thread, ten a second at most
  const std::atomic<bool>* stop = nullptr;           // set: ends soon with kConflict
};

struct TarExportReport {
  int64_t entries = 0, files = 0, bytes = 0;  // of the snapshot
};

// Writes it all to `sink` and finishes that. After an error what was written is no whole tar. kCorrupt names
// the file whose content is damaged.
Result<TarExportReport> ExportTar(const Repository& repository, const TarExportRequest& request,
                                  ByteSink& sink);

// The same into a file, which is there only when it is whole: written beside it, synced, renamed. kConflict
// when it is there already, unless `replace`. How many bytes it has is added to `size`.
Result<TarExportReport> ExportTarFile(const Repository& repository, const TarExportRequest& request,
                                      const std::string& path, bool replace, int64_t* size);

}  // namespace overcap
