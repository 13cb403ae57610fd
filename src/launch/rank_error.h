// SPDX-License-Identifier: Apache-2.0
// What torch's `record` leaves of the exception that ended a rank (TORCHELASTIC_ERROR_FILE).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

// A line and a traceback. Both are empty when there is no such file, or it is none of record's.
struct RankError {
  std::string message, traceback;
};
RankError ReadErrorFile(const std::string& path);
RankError ParseErrorFile(const std::string& text);

// As torchrun does for the rank that failed first: its error file, with its exit status as errorCode, becomes
// the file that the user named with TORCHELASTIC_ERROR_FILE. Nothing to do where one of them is not there.
Result<void> HandErrorOn(const std::string& error_file, int exit_status, std::string_view users_file);

}  // namespace overcap
