// SPDX-License-Identifier: Apache-2.0
// Freezes a folder: its files as they are now, without what ignore files leave out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/largest.h"
#include "snapshot/store.h"

namespace overcap {

struct CaptureOptions {
  // Told now and then, from the calling thread, how many files and bytes have been read. Not called when
  // nothing had to be.
  std::function<void(int64_t files, int64_t bytes)> progress;
  // A folder that has more is not captured, nor one in which something cannot be looked at: the error is what
  // `refuse` makes of that. Nothing has been read then.
  struct Limit {
    int64_t files = 0, bytes = 0;
    std::function<Error(const Error& why)> refuse;
  };
  std::optional<Limit> limit;
  // A folder that is left out when it lies inside; by default the one that the store is in, which is the
  // Overcap root.
  std::string root;
};

struct CaptureReport {
  std::string tree_id;
  int64_t files = 0;  // files and links
  int64_t bytes = 0;
  int64_t new_files = 0;  // whose content the store did not have
  int64_t new_bytes = 0;
  int64_t read_files = 0;          // that had to be read: new, changed or not known to be unchanged
  Largest largest;                 // what a user should look at when it is too much
  std::vector<std::string> notes;  // what was skipped and why, one line each
};

// Durable when it returns. An unchanged folder costs one stat per file. A file that changes meanwhile is
// stored as it was read; one that cannot be read is an error that names it, and then nothing is kept.
// kNotFound for a folder that is none.
Result<CaptureReport> Capture(const SnapshotStore& store, const std::string& folder,
                              const CaptureOptions& options = {});

}  // namespace overcap
