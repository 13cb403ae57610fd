// SPDX-License-Identifier: Apache-2.0
// What the commands share that put people inside allocations: alloc, shell, ssh, exec, release.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/world.h"
#include "control/alloc.h"
#include "control/exec.h"

namespace overcap::cli {

// Where allocations stand: the chosen cluster's folder first.
Result<AllocWorld> AllocationsOf(World& world);

// The resources that a person asks for by flags: --gpus --gpu-type --cpus --mem --time --partition --account
// --qos --node. One GPU when nothing is said.
Result<JobRequest> ReadPersonRequest(World& world, const Args& args);

// A job by its id, or the job of an allocation by the allocation's name, with the cluster that has it.
struct PersonTarget {
  Cluster* cluster = nullptr;
  JobRecord record;
};
Result<PersonTarget> FindTarget(World& world, const std::string& word);

// `JOB [-w NODE] [--] [CMD...]`: flags may stand behind the job, before the command.
struct BesideWords {
  std::string job;
  std::string node;
  std::vector<std::string> command;
};
inline constexpr Flag kBesideFlags[] = {
    {"--node", "-w", "NODE", "on this node of the job; its first one by default"},
};
Result<BesideWords> ReadBesideWords(const Args& args);

// Runs the command (empty: a shell) beside the job; becomes it where it can.
// `verb` is what was typed.
Result<int> RunBeside(World& world, std::string_view verb, const BesideWords& words);

bool OnTerminal();  // stdin and stdout are

}  // namespace overcap::cli
