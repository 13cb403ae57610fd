// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job_store.h"
#include "stores/store.h"

namespace overcap {

// What a courier is told on its command line; no key is among it.
struct CourierOptions {
  std::string job_dir;    // <root>/jobs/<id>; on a node <node folder>/jobs/<id>
  std::string store_dir;  // what the repository keeps on this machine
  JobStore via;           // the job's store
  bool node = false;      // the folder is the node's own: it is filled from the store, and emptied at the end
  int64_t backlog = int64_t{4} << 30;  // node: bytes that are not uploaded may take so much of the disk

  std::string JobId() const { return job_dir.substr(job_dir.rfind('/') + 1); }
  bool operator==(const CourierOptions&) const = default;
};

std::vector<std::string> CourierWords(const CourierOptions& options);               // "courier", "--job", ...
Result<CourierOptions> ParseCourierOptions(const std::vector<std::string>& words);  // behind "courier"

// Opens the part `below` ("" or "store") of a job's store, with the keys that this machine has for it.
using JobStoreOpener =
    std::function<Result<std::unique_ptr<Store>>(const JobStore& store, std::string_view below)>;

}  // namespace overcap
