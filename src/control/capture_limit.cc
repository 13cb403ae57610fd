// SPDX-License-Identifier: Apache-2.0
#include "control/capture_limit.h"

#include <unistd.h>

#include "base/text.h"
#include "control/precious_folder.h"

namespace overcap {

std::optional<CaptureOptions::Limit> CaptureLimitOf(const std::string& folder, const Variables& variables,
                                                    const Config& config) {
  const std::string ignore = (folder == "/" ? "" : folder) + "/.overcapignore";
  const std::string_view why = WhyPrecious(folder, variables);
  if (why.empty() || access(ignore.c_str(), F_OK) == 0) return std::nullopt;
  CaptureOptions::Limit limit{config.code.max_files_warn, config.code.max_bytes_warn, {}};
  limit.refuse = [folder, ignore, why](const Error& found) {
    return Error{ErrorCode::kUsage,
                 StrCat(Quoted(folder, 300), " ", why, ", and all of it would be frozen: ", found.message),
                 StrCat("change to the folder of your code; or write into ", Quoted(ignore, 300),
                        " what to leave out")};
  };
  return limit;
}

}  // namespace overcap
