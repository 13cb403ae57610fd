// SPDX-License-Identifier: Apache-2.0
#include "launch/programs.h"

#include "sys/process.h"

namespace overcap {

std::string RealPrograms::Find(std::string_view name) const {
  return ResolveProgram(name, PathOf(variables_.entries()), "").value_or("");
}

Result<Captured> RealPrograms::Run(const std::vector<std::string>& argv, std::chrono::milliseconds deadline) {
  SpawnRequest request;
  request.argv = argv;
  request.env = variables_.entries();
  return CaptureOutput(std::move(request), deadline);
}

}  // namespace overcap
