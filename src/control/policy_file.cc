// SPDX-License-Identifier: Apache-2.0
#include "control/policy_file.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "base/text.h"
#include "control/expand_folder.h"
#include "sys/fd.h"

namespace overcap {
namespace {

Result<std::string> ReadText(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return Fail(ErrnoError(errno, StrCat("cannot read policy '", path, "'")));
  std::string text;
  char buffer[64 << 10];
  while (text.size() <= kMaxPolicyBytes) {
    const ssize_t got = read(file.Get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrnoError(errno, StrCat("cannot read policy '", path, "'")));
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace

Result<PolicyReading> LookAtPolicyFile(const std::string& path) {
  OC_TRY(text, ReadText(path));
  return ReadPolicy(text);
}

Result<std::string> PolicyFileText(const std::string& path) {
  return ReadText(path);
}

Result<Policy> ReadPolicyFile(const std::string& path) {
  OC_TRY(text, ReadText(path));
  return ParsePolicy(text, path);
}

Result<std::string> EnginePolicyPath(const std::string& flag, const Config& config) {
  const std::string& asked = flag.empty() ? config.clusters.at("local").policy : flag;
  if (asked.empty()) return std::string();
  return ExpandFolder(asked, Variables::OfThisProcess());
}

}  // namespace overcap
