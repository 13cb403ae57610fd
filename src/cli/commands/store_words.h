// SPDX-License-Identifier: Apache-2.0
// What the commands of stores share.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/progress_meter.h"
#include "cli/world.h"
#include "control/stop_grace.h"
#include "control/stop_signals.h"
#include "control/stores/open_store.h"
#include "control/transfer/transfer.h"

namespace overcap::cli {

StoreBook StoreBookOf(World& world);

// A store opened for people's files, and a key in it.
struct OpenedStore {
  std::unique_ptr<Store> store;
  StorePlace place;  // of the store
  std::string key;   // "": all of it
};

// The object of this name if there is one, else the folder; kNotFound when there is neither. A '/' at the end
// says that a folder is meant.
Result<OpenedStore> OpenSource(World& world, const std::string& text);
// A folder of a service with the objects whose names no file could have, too: to list and to remove.
Result<OpenedStore> WithEveryName(World& world, OpenedStore opened);
// A folder, made when `create` is set and it is missing.
Result<OpenedStore> OpenFolderAt(World& world, const StorePlace& place, bool create);
// The store in which an object of this name stands, and its key; whether it is there is not looked at.
Result<OpenedStore> OpenObjectAt(World& world, const StorePlace& place, bool create);

inline constexpr Flag kJobsFlag = {"--jobs", "-j", "N",
                                   "so many objects and parts at the same time; by default 32"};
inline constexpr Flag kChecksumFlag = {"--checksum", "", "", "compare contents, not sizes and times"};
inline constexpr Flag kFsyncFlag = {"--fsync", "", "",
                                    "end only when all that was copied is on the disk of DST"};

// Workers, progress and stop from what was given; the meter and the signals must outlive it.
Result<TransferOptions> TransferOptionsFrom(const Args& args, std::string_view what, std::string_view words,
                                            ProgressMeter* meter, const StopSignals& signals);
// What a --dry-run has told of, in all.
struct StepSums {
  int64_t copies = 0, copied_bytes = 0, removals = 0;
};
// Prints each step, as --dry-run does. `sums` must outlive the options.
void TellSteps(World& world, TransferOptions* options, StepSums* sums);

// What a copy or a removal ends with. The exit status.
struct TransferEnd {
  int64_t took_us = 0;
  bool in_bucket = false;             // what was read or removed is in a service
  bool removal = false;               // nothing was to be copied
  const StepSums* dry_run = nullptr;  // nothing was changed, but this would have been
};
int TellTransfer(World& world, const TransferReport& report, const StopSignals& signals,
                 const TransferEnd& end);
// What is said when a command that was stopped does not come to its end, for StopGrace.
std::function<void(int status)> StoppedLate(World& world);
void TellProblems(World& world, const std::vector<TransferProblem>& problems, int64_t count);
// Objects that are none for us: of services because of their names, elsewhere because they are no files.
void TellLeftOut(World& world, int64_t left_out, bool in_bucket);

// A name as it stands on a line: what is no text, and what would end the line, as U+FFFD.
std::string ShownName(std::string_view name);

// Whether a place is in S3 or Azure.
bool IsInBucket(const StorePlace& place);

// The exit status of a transfer in which something failed: that of the first failure.
int StatusOfProblems(const std::vector<TransferProblem>& problems);

}  // namespace overcap::cli
