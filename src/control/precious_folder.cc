// SPDX-License-Identifier: Apache-2.0
#include "control/precious_folder.h"

#include <climits>
#include <cstdlib>

#include "base/text.h"

namespace overcap {
namespace {

// "" where there is no such thing.
std::string RealPath(const std::string& path) {
  char real[PATH_MAX];
  return realpath(path.c_str(), real) == nullptr ? "" : real;
}

}  // namespace

Result<void> RefusePreciousFolder(const std::string& path, const Variables& variables) {
  const std::string real = RealPath(path), home = RealPath(std::string(variables.Get("HOME")));
  const bool holds_home = !home.empty() && (home == real || home.starts_with(real + "/"));
  if (real.empty() || (real != "/" && !holds_home)) return {};
  return Fail(ErrorCode::kUsage,
              StrCat(Quoted(path, 300), real == "/" ? " is everything" : " has your home folder in it",
                     ": all of it is neither removed nor replaced"),
              "name a folder in it");
}

}  // namespace overcap
