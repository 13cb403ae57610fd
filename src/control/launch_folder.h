// SPDX-License-Identifier: Apache-2.0
// The folder of a launch: docs/formats/launch-folder.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/allocation.h"
#include "launch/compose/launch_command.h"
#include "launch/runner.h"

namespace overcap {

class JsonWriter;

// "20261115-081205-3fa9c1": UTC and six random hex digits.
std::string MakeLaunchId(int64_t unix_us, uint32_t random);

struct LaunchFacts {
  std::string id;
  std::vector<std::string> command;
  std::string folder;
  Launcher launcher;
  std::vector<std::string> launch_command;
  RankPlan plan;
  Allocation allocation;
  int64_t started_us = 0;
};

struct AttemptRecord {
  int attempt = 1;
  AttemptEnd end;
  std::string line;  // as it was told
  int64_t started_us = 0, ended_us = 0;
};

void WritePlan(const RankPlan& plan, JsonWriter* out);  // fields "hosts" and "spares"
std::string LaunchFactsJson(const LaunchFacts& facts);
std::string LaunchResultJson(int exit_status, const std::vector<AttemptRecord>& attempts);

class LaunchFolder {
 public:
  // Makes it: `asked`, or <root>/launches/ID; asked/ID when `below`, or when `asked` holds a launch already.
  static Result<LaunchFolder> Make(const std::string& root, const std::string& asked, const std::string& id,
                                   bool below);

  const std::string& path() const { return path_; }
  Result<std::string> MakeAttempt(int number) const;  // its folder
  Result<void> KeepFacts(const LaunchFacts& facts) const;
  Result<void> KeepResult(int exit_status, const std::vector<AttemptRecord>& attempts) const;
  void Remove() const;  // nothing was started: only what was here before stays

 private:
  std::string path_;
  std::string latest_;    // link to change when the launch has begun; "": none
  std::string previous_;  // where it led before; "": nowhere
};

}  // namespace overcap
