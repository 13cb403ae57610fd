// SPDX-License-Identifier: Apache-2.0
// What a policy makes of a history: for people and for programs.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/pooled/replay_report.h"

namespace overcap {

struct Simulation {
  std::string policy, trace;  // the files
  pooled::ReplayReport report;
};

Result<Simulation> Simulate(const std::string& policy_file, const std::string& trace_file, const Trace& trace,
                            const pooled::ReplayOptions& options);

// A factor above 0 and up to 1000; 1 where nothing is said.
Result<double> ParseScale(std::string_view text);

// One lab under two policies; no jobs: no job of it ran, or the policy does not have it.
struct LabPair {
  std::string name;
  pooled::GroupReport now, before;
};
std::vector<LabPair> LabPairs(const Simulation& now, const Simulation& before);

// docs/formats/policy-simulate.md; `against` may be null.
std::string SimulationToJson(const Simulation& simulation, const Simulation* against);

}  // namespace overcap
