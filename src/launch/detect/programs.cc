// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/programs.h"

#include "sys/process.h"

namespace overcap {
namespace {

constexpr size_t kMaxOutput = size_t{64} << 20;  // the jobs of a whole site, as qstat tells them

}  // namespace

std::string RealPrograms::Find(std::string_view name) const {
  return ResolveProgram(name, PathOf(variables_.entries()), "").value_or("");
}

Result<Captured> RealPrograms::Run(const std::vector<std::string>& argv, std::chrono::milliseconds deadline) {
  SpawnRequest request;
  request.argv = argv;
  request.env = variables_.entries();
  return CaptureOutput(std::move(request), deadline, kMaxOutput);
}

}  // namespace overcap
