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

std::string_view WhyPrecious(const std::string& path, const Variables& variables) {
  const std::string real = RealPath(path), home = RealPath(std::string(variables.Get("HOME")));
  if (real == "/") return "is everything";
  if (real.empty() || home.empty()) return "";
  if (home == real) return "is your home folder";
  return home.starts_with(real + "/") ? "has your home folder in it" : "";
}

Result<void> RefusePreciousFolder(const std::string& path, const Variables& variables) {
  const std::string_view why = WhyPrecious(path, variables);
  if (why.empty()) return {};
  return Fail(ErrorCode::kUsage,
              StrCat(Quoted(path, 300), " ", why, ": all of it is neither removed nor replaced"),
              "name a folder in it");
}

}  // namespace overcap
