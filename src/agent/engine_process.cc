// SPDX-License-Identifier: Apache-2.0
#include "agent/engine_process.h"

#include <climits>
#include <string>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

// What it executes, also when that file was replaced meanwhile; "" when it is gone or another user's.
std::string ProgramOf(std::string_view pid) {
  std::string path(PATH_MAX, '\0');
  const ssize_t size = readlink(StrCat("/proc/", pid, "/exe").c_str(), path.data(), path.size());
  path.resize(size > 0 ? static_cast<size_t>(size) : 0);
  constexpr std::string_view kReplaced = " (deleted)";
  if (path.ends_with(kReplaced)) path.resize(path.size() - kReplaced.size());
  return path;
}

}  // namespace

bool IsEngineProcess(pid_t pid) {
  const std::string program = ProgramOf(std::to_string(pid));
  if (program.empty() || program != ProgramOf("self")) return false;
  const std::string words = PosixFiles().Read(StrCat("/proc/", pid, "/cmdline")).value_or("");
  const std::vector<std::string> argv = Split(words, '\0');
  return argv.size() > 1 && (argv[1] == "daemon" || argv[1] == "agent");
}

}  // namespace overcap
