// SPDX-License-Identifier: Apache-2.0
// The stores of jobs (docs/formats/job-store.md): from what a user writes to what a spec has, and opened.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/stores/open_store.h"
#include "model/job_store.h"
#include "snapshot/store.h"
#include "sys/clock.h"

namespace overcap {

// kUsage as FindStorePlace; also for memory, which no job sees.
Result<JobStore> JobStoreOf(const StoreBook& book, const std::string& text);

// The part `below` ("" or "store") of it, with the keys that this machine has. `patience_us` and
// `answered` as OpenStoreOptions has them.
Result<std::unique_ptr<Store>> OpenJobStore(const JobStore& store, std::string_view below,
                                            const Variables& variables, int64_t patience_us = 0,
                                            bool answered = false);

// The same on a machine of the job, after the submitter has reached the store; and a folder's name, by the
// variables of this process.
Result<std::unique_ptr<Store>> OpenJobStoreHere(const JobStore& store, std::string_view below);
Result<std::string> ExpandFolderHere(const std::string& folder);

// Its repository; `root` has the place for what that keeps on this machine.
Result<SnapshotStore> OpenCodeStoreOf(const JobStore& store, const std::string& root, const Clock& clock);

}  // namespace overcap
