// SPDX-License-Identifier: Apache-2.0
// What of a job's folder stands in its store beside the logs, brought and taken (docs/formats/job-store.md).
// `job` is "jobs/<id>/".
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "stores/store.h"

namespace overcap {

// Brings spec.json, and cancel.json where there is one, into a folder; what is there already stays. kNotFound
// without a spec.
Result<void> BringSpec(const Store& store, const std::string& job, const std::string& folder);
Result<void> BringCancel(const Store& store, const std::string& job, const std::string& folder);
// Claims and reports whose names begin with `prefix`. Of reports that are there what is new; their times tell
// when the agent last gave a sign of life. Logs of tasks, and claims of an elastic
// job's nodes, become empty files: that one has begun. How many objects there are.
Result<size_t> BringReports(const Store& store, const std::string& job, const std::string& prefix,
                            const std::string& folder);
// Those of all attempts of a plain job from the last on that is in the folder.
Result<void> BringAttempts(const Store& store, const std::string& job, const std::string& folder);

// Puts a file of the folder unless its key is there; what is there now.
Result<std::string> CreateFromFile(Store* store, const std::string& job, const std::string& folder,
                                   const std::string& name);
// The same with a text.
Result<std::string> CreateOrRead(Store* store, const std::string& key, const std::string& text);

}  // namespace overcap
