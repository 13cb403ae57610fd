// SPDX-License-Identifier: Apache-2.0
// What of a job stands in its store, as submitters and readers see it (docs/formats/job-store.md).
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model/job_record.h"
#include "model/job_spec.h"
#include "stores/store.h"

namespace overcap {

// The store of a job, with the keys of this process. Kept open for as long as the process lives; only one
// thread may ask.
Result<std::shared_ptr<Store>> OpenOnce(const JobStore& store);

// Before a job with a store is sent; nothing for any other.
Result<void> PutStoredSpec(const JobSpec& spec);
// After the cluster has refused it for good.
void DropStoredSpec(const JobSpec& spec, const Error& refusal);
// All that its store has of it but the code.
Result<void> RemoveStoredJob(const JobStore& store, const std::string& id);

// The store in which a job's logs are; nullptr: the job has none. Opened once per process and store.
Result<std::shared_ptr<Store>> LogStoreOf(const JobRecord& record);
// The key of a file in the job's folder.
std::string StoredKeyOf(const JobRecord& record, const std::string& path);

// Which tries of a task there are, as empty files of the job's folder, where the logs are in a store.
void BringTries(const JobRecord& record, int task);

}  // namespace overcap
