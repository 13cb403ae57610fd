// SPDX-License-Identifier: Apache-2.0
#include "control/capture_limit.h"

#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "control/precious_folder.h"

namespace overcap {

std::function<Result<void>(int64_t files, int64_t bytes)> CaptureLimit(const std::string& folder,
                                                                       const Variables& variables,
                                                                       const Config& config) {
  const std::string ignore = (folder == "/" ? "" : folder) + "/.overcapignore";
  const std::string_view why = WhyPrecious(folder, variables);
  if (why.empty() || access(ignore.c_str(), F_OK) == 0) return {};
  return [folder, ignore, why, code = config.code](int64_t files, int64_t bytes) -> Result<void> {
    if (files <= code.max_files_warn && bytes <= code.max_bytes_warn) return {};
    return Fail(ErrorCode::kUsage,
                StrCat(Quoted(folder, 300), " ", why, ": ", CountOf(files, "file"), ", ", FormatBytes(bytes),
                       " would be frozen"),
                StrCat("change to the folder of your code; or write into ", Quoted(ignore, 300),
                       " what to leave out"));
  };
}

}  // namespace overcap
