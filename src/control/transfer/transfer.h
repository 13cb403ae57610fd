// SPDX-License-Identifier: Apache-2.0
// Copies between stores: what differs is copied, many objects and parts of large ones at the same time,
// within a bounded memory. What was cut off goes on behind what it had.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/transfer/same_object.h"
#include "stores/store.h"

namespace overcap {

struct TransferProgress {
  int64_t files_done = 0, bytes_done = 0;
  int64_t files_total = 0, bytes_total = 0;  // 0 until all is listed
};

// One thing that is done, or would be.
struct TransferStep {
  enum class Kind { kCopy, kRemove } kind = Kind::kCopy;
  std::string key;
  int64_t size = 0;
  CopyVerdict why = CopyVerdict::kNew;  // of copies
};

// What the content of a copy was compared with on its way.
enum class ProofKind {
  kNone,         // nothing: the source tells no checksum that can be compared
  kMd5,          // the MD5 that the source tells
  kMd5OfParts,   // the MD5 of the MD5s of the parts that it was uploaded in
  kMd5OfRanges,  // the MD5 that the source tells of each range that is read
  kService,      // a file: the service that it goes to compares what arrives there with what was sent
};
constexpr size_t kProofKinds = 5;
std::string_view ProofKindName(ProofKind kind);  // "md5_of_parts"

struct TransferProblem {
  std::string key;
  Error error;
};

struct TransferOptions {
  bool remove_extra = false;           // what only the destination has is removed, after all copies went well
  bool dry_run = false;                // nothing is changed; `step` tells what would be
  bool checksum = false, all = false;  // as SameRules
  bool flush = false;  // what was copied is durable at the end, as far as the destination can say
  int workers = 16;
  int64_t memory = 40 << 20;
  const std::atomic<bool>* stop = nullptr;  // set from outside: no more is begun
  // From any thread, several at once.
  std::function<void(const TransferProgress&)> progress = {};
  std::function<void(const TransferStep&)> step = {};  // before it is done
};

struct TransferReport {
  int64_t copied = 0, copied_bytes = 0;
  int64_t same = 0, same_bytes = 0;
  int64_t removed = 0;
  int64_t extra = 0;                             // only the destination has them, and they stay
  int64_t left_out = 0;                          // objects without a key (StorePage::left_out)
  std::array<int64_t, kProofKinds> proven = {};  // of the copied, by ProofKind
  int64_t unproven = 0;                          // of these with kNone: those that came from a service
  int64_t failed = 0;                            // copies and removals
  std::vector<TransferProblem> problems;         // the first of them
  bool stopped = false;                          // `stop` was set
  bool gave_up = false;                          // so many failed one after the other that there is no use
};

constexpr size_t kMostTransferProblems = 1000;

// All of `from` into `to`. An error when a listing fails; what fails of single objects is in the report.
// kConflict, before anything is done, when extra objects were to be removed and `from` has none at all.
Result<TransferReport> TransferAll(const Store& from, Store& to, const TransferOptions& options);
// A dry run into a folder that does not exist yet.
Result<TransferReport> TransferToNowhere(const Store& from, const TransferOptions& options);
// One object under a name of its own.
Result<TransferReport> TransferOne(const Store& from, const std::string& key, Store& to,
                                   const std::string& to_key, const TransferOptions& options);
// Everything under `prefix` is removed.
Result<TransferReport> RemoveAll(Store& store, const std::string& prefix, const TransferOptions& options);

// Content against content, by reading both.
struct StoreComparison {
  int64_t same = 0, same_bytes = 0;
  int64_t left_out = 0;
  int64_t missing = 0, extra = 0, different = 0, failed = 0;  // of `to`
  std::vector<TransferProblem> problems;                      // the first of them
  bool stopped = false;
};
Result<StoreComparison> CompareAll(const Store& from, const Store& to, const TransferOptions& options);
Result<StoreComparison> CompareOne(const Store& from, const std::string& key, const Store& to,
                                   const std::string& to_key, const TransferOptions& options);

}  // namespace overcap
