// SPDX-License-Identifier: Apache-2.0
// A service that is to live as long as a held allocation must be a process of its holder: what is started in
// a shell there ends with the shell's step. So it is asked for in a file, which the holder takes
// (docs/formats/allocations.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

struct AutoRequest {
  std::string host;               // only the holder on this host takes it
  std::string folder;             // of the workspace
  std::vector<std::string> argv;  // of the service

  bool operator==(const AutoRequest&) const = default;
};

std::string AutoRequestToJson(const AutoRequest& request);
Result<AutoRequest> AutoRequestFromJson(std::string_view json, const std::string& file);

// <root>/allocations/NAME.auto of the allocation file <root>/allocations/NAME.json.
std::string AutoRequestFolder(const std::string& allocation_file);

// Those for this host; their files are gone then. What cannot be read is removed.
std::vector<AutoRequest> TakeAutoRequests(const std::string& folder, std::string_view host);

// The file of the allocation that is held by this job; "" when none is.
std::string AllocationFileOf(const std::vector<std::string>& roots, std::string_view job);

// Asks, and waits until the service of the folder has its lock, at most `patience_us`. Its pid; 0: nobody has
// taken the request, and it is taken back.
Result<pid_t> AskHolder(const std::string& allocation_file, const AutoRequest& request, int64_t patience_us);

}  // namespace overcap
